/* The families of /metrics: one row each, in output order.  tools/check-metrics compares
 * them with docs/metrics.md.
 */
#ifndef API_METRICS_METRICS_TABLE_H
#define API_METRICS_METRICS_TABLE_H

/* clang-format off */
#define METRICS_TABLE(X) \
    X(BUILD_INFO, "underwatt_build_info", "gauge", "Always 1; the version and whether all boards are simulated.") \
    X(START_TIME, "underwatt_start_time_seconds", "gauge", "When the daemon started, in seconds since 1970.") \
    X(DRY_RUN, "underwatt_dry_run", "gauge", "1 when caps are decided and recorded but not written.") \
    X(ACTUATOR_UP, "underwatt_actuator_up", "gauge", "1 when the process that writes caps answers.") \
    X(BUDGET, "underwatt_budget_watts", "gauge", "The highest permitted sum of all boards' limits.") \
    X(BUDGET_COUNTED, "underwatt_budget_counted_watts", "gauge", "Sum of the limits that may be in force.") \
    X(CONFIG_LOADS, "underwatt_config_loads_total", "counter", "Configurations that were put in force.") \
    X(CONFIG_FAILURES, "underwatt_config_failures_total", "counter", "Configurations that were refused; the old one stayed.") \
    X(POLICY_LOADS, "underwatt_policy_loads_total", "counter", "Policies that were put in force.") \
    X(POLICY_FAILURES, "underwatt_policy_failures_total", "counter", "Policies that were refused; the old one, or none, stayed.") \
    X(POLICY_EVALUATIONS, "underwatt_policy_evaluations_total", "counter", "Evaluations of the policy.") \
    X(POLICY_REFUSED, "underwatt_policy_claims_refused_total", "counter", "Claims of rules and limits that could not be made.") \
    X(RULE_FIRING, "underwatt_rule_firing", "gauge", "1 where a rule of the policy acts on the board, else 0.") \
    X(LIMIT_ACTING, "underwatt_limit_acting", "gauge", "1 where a limit of the policy holds the board below its original, else 0.") \
    X(LIMIT_MARGIN, "underwatt_limit_margin_celsius", "gauge", "How far the board is below the policy's temperature; negative above it.") \
    X(LIMIT_FIRST_STEP, "underwatt_limit_first_step_watts", "gauge", "The step up when all boards that the limit on the rise holds low begin to draw.") \
    X(LIMIT_FALL, "underwatt_limit_largest_fall_watts", "gauge", "Largest fall of the node's power from one second to the next under a limit on its rise.") \
    X(LEDGER_UP, "underwatt_ledger_up", "gauge", "1 when the ledger can be written.") \
    X(LEDGER_WAITING, "underwatt_ledger_waiting_rows", "gauge", "Rows in memory that are not in the ledger yet.") \
    X(LEDGER_LOST, "underwatt_ledger_lost_rows_total", "counter", "Rows that will never be in the ledger.") \
    X(LEDGER_ROWS, "underwatt_ledger_rows_total", "counter", "Rows written to the ledger.") \
    X(LEDGER_FAILURES, "underwatt_ledger_failures_total", "counter", "Writes to the ledger that failed.") \
    X(HTTP_REQUESTS, "underwatt_http_requests_total", "counter", "Requests that were answered or refused.") \
    X(HTTP_REFUSED, "underwatt_http_refused_total", "counter", "Requests and connections that were refused or cut off.") \
    X(HTTP_CONNECTIONS, "underwatt_http_connections", "gauge", "Connections that are open.") \
    X(HTTP_FOLLOWERS, "underwatt_http_followers", "gauge", "Streams of live events that are open.") \
    X(JOBS, "underwatt_jobs", "gauge", "Running jobs, by source.") \
    X(GPU_INFO, "underwatt_gpu_info", "gauge", "Always 1; the UUID, bus id and model of the board, to join on board and hostname.") \
    X(GPU_POWER, "underwatt_gpu_power_watts", "gauge", "Mean power of the board over the last second or two.") \
    X(GPU_ENERGY, "underwatt_gpu_energy_joules_total", "counter", "Energy of the board since the ledger began.") \
    X(GPU_SPLIT, "underwatt_gpu_energy_split_joules_total", "counter", "The same energy by kind; the kinds add up to the whole.") \
    X(GPU_USE_ENERGY, "underwatt_gpu_use_joules_total", "counter", "The same energy by what the board did; these parts add up to the whole.") \
    X(GPU_USE_TIME, "underwatt_gpu_use_seconds_total", "counter", "Time in this use; a shared board counts once for each job.") \
    X(GPU_CO2E, "underwatt_gpu_co2e_grams_total", "counter", "Emissions of the board's energy by the grid's average intensity, since the daemon began.") \
    X(GPU_MARGINAL, "underwatt_gpu_co2e_marginal_grams", "gauge", "The same by the marginal intensity; it may fall.") \
    X(GPU_COST, "underwatt_gpu_cost", "gauge", "Cost of the board's energy since the daemon began, in the currency; it may fall.") \
    X(GPU_CHARGED, "underwatt_gpu_charged_joules_total", "counter", "Energy of these emissions and cost: that for which the signal was known.") \
    X(GPU_LIMIT, "underwatt_gpu_power_limit_watts", "gauge", "Power limits of the board: requested, enforced, target, ramp and bounds.") \
    X(GPU_CLAIMS, "underwatt_gpu_claims", "gauge", "Claims on the board's cap, by kind.") \
    X(GPU_UNMET, "underwatt_gpu_claims_unmet", "gauge", "Claims that are not in force and not on the way, by kind.") \
    X(GPU_STATE, "underwatt_gpu_cap_state", "gauge", "1 for the state that the board's cap is in.") \
    X(GPU_WRITES, "underwatt_gpu_cap_writes_total", "counter", "Limits written by the daemon.") \
    X(GPU_WRITE_FAILURES, "underwatt_gpu_cap_failures_total", "counter", "Limits that could not be written.") \
    X(GPU_CHANGES, "underwatt_gpu_cap_changes_total", "counter", "Changes of the limit by other programs, by cause.") \
    X(GPU_THROTTLE, "underwatt_gpu_throttle_seconds_total", "counter", "Time under each clock-event reason that the driver names.") \
    X(GPU_TEMPERATURE, "underwatt_gpu_temperature_celsius", "gauge", "Temperature of the board.") \
    X(GPU_CLOCK, "underwatt_gpu_clock_hertz", "gauge", "Clock of the multiprocessors and of the memory.") \
    X(GPU_LOCK, "underwatt_gpu_clock_lock_hertz", "gauge", "Lock of the SM clock: as decided, and as set; 0 not locked.") \
    X(GPU_DISOBEYED, "underwatt_gpu_clock_disobeyed_total", "counter", "Clock locks that the board did not obey under load.") \
    X(GPU_UTILIZATION, "underwatt_gpu_utilization_ratio", "gauge", "Share of time in which something ran on the board.") \
    X(GPU_MEMORY_UTILIZATION, "underwatt_gpu_memory_utilization_ratio", "gauge", "Share of time in which the board's memory was read or written.") \
    X(GPU_JOBS, "underwatt_gpu_jobs", "gauge", "Jobs on the board.") \
    X(DRIVER_CALLS, "underwatt_driver_calls_total", "counter", "Driver calls made to sample the board.") \
    X(DRIVER_FAILURES, "underwatt_driver_failures_total", "counter", "Driver calls that failed.") \
    X(JOB_ENERGY, "underwatt_job_energy_joules_total", "counter", "Energy attributed to the job; job_id=\"other\" is the sum of the jobs beyond metrics.max_jobs.") \
    X(JOB_TIME, "underwatt_job_time_seconds_total", "counter", "Run time of the job.") \
    X(JOB_STEPS, "underwatt_job_steps_total", "counter", "Steps that the job reported.") \
    X(JOB_PHASE, "underwatt_job_phase", "gauge", "What the job does: 1 training, 2 validation, 3 loading, 4 checkpoint, 5 start-up, 6 idle.") \
    X(JOB_CAP, "underwatt_job_cap_watts", "gauge", "The cap in force on the boards of the job, the highest if they differ.") \
    X(JOB_BEST_CAP, "underwatt_job_best_cap_watts", "gauge", "The best cap found so far for the job, or the one held.") \
    X(JOB_SAVED, "underwatt_job_saved_ratio", "gauge", "Energy saved so far against the original cap, as a part of what it would have been.") \
    X(JOB_SAVED_LOWER, "underwatt_job_saved_lower_ratio", "gauge", "Lower end of its 95 % interval.") \
    X(JOB_SAVED_UPPER, "underwatt_job_saved_upper_ratio", "gauge", "Upper end of its 95 % interval.") \
    X(JOB_SLOWDOWN, "underwatt_job_slowdown_ratio", "gauge", "Time a step over the time at the original cap.") \
    X(JOB_CO2E, "underwatt_job_co2e_grams_total", "counter", "Emissions of the job's energy by the grid's average intensity, since the daemon began.") \
    X(JOB_MARGINAL, "underwatt_job_co2e_marginal_grams", "gauge", "The same by the marginal intensity; it may fall.") \
    X(JOB_COST, "underwatt_job_cost", "gauge", "Cost of the job's energy since the daemon began, in the currency; it may fall.") \
    X(JOB_CHARGED, "underwatt_job_charged_joules_total", "counter", "Energy of these emissions and cost: that for which the signal was known.") \
    X(JOB_GPU, "underwatt_job_gpu_info", "gauge", "Always 1; which boards a job is on, to join on board and hostname.") \
    X(CPU_POWER, "underwatt_cpu_power_watts", "gauge", "Mean power of a RAPL domain over a second or more.") \
    X(CPU_ENERGY, "underwatt_cpu_energy_joules_total", "counter", "Energy of a RAPL domain, renewed once a second at most.") \
    X(USER_WASTE_ENERGY, "underwatt_user_waste_joules_total", "counter", "Energy of boards that the user's jobs had and did not use, since the daemon began; user=\"other\" is the sum of the rest.") \
    X(USER_WASTE_TIME, "underwatt_user_waste_seconds_total", "counter", "Time of these boards.") \
    X(USER_WASTE_COST, "underwatt_user_waste_cost", "gauge", "Cost of that energy, in the currency; it may fall.") \
    X(USER_WASTE_PRICED, "underwatt_user_waste_priced_joules_total", "counter", "Energy for which a price was known.") \
    X(PROJECT_WASTE_ENERGY, "underwatt_project_waste_joules_total", "counter", "Energy of boards that the project's jobs had and did not use, since the daemon began; project=\"other\" is the sum of the rest.") \
    X(PROJECT_WASTE_TIME, "underwatt_project_waste_seconds_total", "counter", "Time of these boards.") \
    X(PROJECT_WASTE_COST, "underwatt_project_waste_cost", "gauge", "Cost of that energy, in the currency; it may fall.") \
    X(PROJECT_WASTE_PRICED, "underwatt_project_waste_priced_joules_total", "counter", "Energy for which a price was known.") \
    X(REVISIONS, "underwatt_ledger_revisions_total", "counter", "Rows that correct booked figures after the source changed values of the signal.") \
    X(REVISED_CO2E, "underwatt_ledger_revised_co2e_grams", "gauge", "Sum of these rows of the signal carbon, since the daemon began; it may fall.") \
    X(REVISED_MARGINAL, "underwatt_ledger_revised_co2e_marginal_grams", "gauge", "The same of the signal carbon.marginal.") \
    X(REVISED_COST, "underwatt_ledger_revised_cost", "gauge", "The same of the signal price, in the currency.") \
    X(SIGNAL_VALUE, "underwatt_signal_value", "gauge", "Value of a signal from outside in its unit; 1 true, 0 false.") \
    X(SIGNAL_AGE, "underwatt_signal_age_seconds", "gauge", "Age of the last value of a signal from outside, known or not.") \
    X(SIGNAL_KNOWN, "underwatt_signal_known", "gauge", "1 when a signal from outside is known.") \
    X(SIGNAL_ESTIMATED, "underwatt_signal_estimated", "gauge", "1 when the source marks the value of a signal from outside as an estimate.") \
    X(SIGNAL_INFO, "underwatt_signal_info", "gauge", "Always 1; which source a signal from outside has.") \
    X(SOURCE_REQUESTS, "underwatt_signal_source_requests_total", "counter", "Requests of underwatt-signals to a source.") \
    X(SOURCE_FAILURES, "underwatt_signal_source_failures_total", "counter", "Rounds of requests to a source that failed.") \
    X(SOURCE_SUCCESS, "underwatt_signal_source_success_timestamp_seconds", "gauge", "When a source answered last, seconds since 1970.") \
    X(FORECAST_ERROR, "underwatt_signal_forecast_error", "gauge", "Mean absolute error of a forecast at a horizon, in the unit of the signal.") \
    X(FORECAST_PERSISTENCE, "underwatt_signal_forecast_persistence_error", "gauge", "The same of the value that was known when the forecast was made.") \
    X(FORECAST_YESTERDAY, "underwatt_signal_forecast_yesterday_error", "gauge", "The same of the value 24 h before.") \
    X(FORECAST_JUDGED, "underwatt_signal_forecast_judged", "gauge", "Values of a forecast that these errors are means of.") \
    X(FORECAST_WORSE, "underwatt_signal_forecast_worse", "gauge", "1 when a forecast is worse than persistence at a horizon.")
/* clang-format on */

enum metrics_id {
#define X(id, name, type, help) METRICS_##id,
    METRICS_TABLE(X)
#undef X
        METRICS_FAMILIES
};

#endif
