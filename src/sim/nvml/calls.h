/* Every function that the library exports, so that each is declared before it is
 * defined and the compiler sees their shapes together.
 */
#ifndef SIM_NVML_CALLS_H
#define SIM_NVML_CALLS_H

#include "sim/nvml/abi.h"
#include "underwatt/sim.h"

/* Copies text: SIM_TOO_SMALL where it does not fit. */
int nv_text(char *to, unsigned size, const char *from);

/* system.c */
int nvmlInit(void);
int nvmlInit_v2(void);
int nvmlInitWithFlags(unsigned flags);
int nvmlShutdown(void);
const char *nvmlErrorString(int result);
int nvmlSystemGetDriverVersion(char *ret, unsigned size);
int nvmlSystemGetNVMLVersion(char *ret, unsigned size);
int nvmlSystemGetCudaDriverVersion(int *ret);
int nvmlSystemGetCudaDriverVersion_v2(int *ret);
int nvmlSystemGetProcessName(unsigned pid, char *ret, unsigned size);
int nvmlDeviceGetCount(unsigned *ret);
int nvmlDeviceGetCount_v2(unsigned *ret);
int nvmlDeviceGetHandleByIndex(unsigned index, nv_device *ret);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, nv_device *ret);
int nvmlDeviceGetHandleByUUID(const char *uuid, nv_device *ret);
int nvmlDeviceGetHandleBySerial(const char *serial, nv_device *ret);
int nvmlDeviceGetHandleByPciBusId(const char *bus, nv_device *ret);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nv_device *ret);
int nvmlUnitGetCount(unsigned *ret);
int nvmlGetExcludedDeviceCount(unsigned *ret);
int uw_sim_info(struct uw_sim_info *ret);

/* board.c */
int nvmlDeviceGetName(nv_device dev, char *ret, unsigned size);
int nvmlDeviceGetUUID(nv_device dev, char *ret, unsigned size);
int nvmlDeviceGetSerial(nv_device dev, char *ret, unsigned size);
int nvmlDeviceGetBoardPartNumber(nv_device dev, char *ret, unsigned size);
int nvmlDeviceGetVbiosVersion(nv_device dev, char *ret, unsigned size);
int nvmlDeviceGetIndex(nv_device dev, unsigned *ret);
int nvmlDeviceGetMinorNumber(nv_device dev, unsigned *ret);
int nvmlDeviceGetBoardId(nv_device dev, unsigned *ret);
int nvmlDeviceGetMultiGpuBoard(nv_device dev, unsigned *ret);
int nvmlDeviceGetBrand(nv_device dev, unsigned *ret);
int nvmlDeviceGetArchitecture(nv_device dev, unsigned *ret);
int nvmlDeviceGetCudaComputeCapability(nv_device dev, int *ret_major, int *ret_minor);
int nvmlDeviceGetNumGpuCores(nv_device dev, unsigned *ret);
int nvmlDeviceGetMaxPcieLinkGeneration(nv_device dev, unsigned *ret);
int nvmlDeviceGetGpuMaxPcieLinkGeneration(nv_device dev, unsigned *ret);
int nvmlDeviceGetMaxPcieLinkWidth(nv_device dev, unsigned *ret);
int nvmlDeviceGetCurrPcieLinkGeneration(nv_device dev, unsigned *ret);
int nvmlDeviceGetCurrPcieLinkWidth(nv_device dev, unsigned *ret);
int nvmlDeviceGetPcieReplayCounter(nv_device dev, unsigned *ret);
int nvmlDeviceGetPciInfo(nv_device dev, struct nv_pci_v2 *ret);
int nvmlDeviceGetPciInfo_v2(nv_device dev, struct nv_pci_v2 *ret);
int nvmlDeviceGetPciInfo_v3(nv_device dev, struct nv_pci *ret);
int nvmlDeviceGetPciInfoExt(nv_device dev, struct nv_pci_ext *ret);
int nvmlDeviceGetMaxClockInfo(nv_device dev, unsigned type, unsigned *ret);
int nvmlDeviceGetMaxCustomerBoostClock(nv_device dev, unsigned type, unsigned *ret);
int nvmlDeviceGetDefaultApplicationsClock(nv_device dev, unsigned type, unsigned *ret);
int nvmlDeviceGetApplicationsClock(nv_device dev, unsigned type, unsigned *ret);
int nvmlDeviceGetSupportedMemoryClocks(nv_device dev, unsigned *n, unsigned *ret);
int nvmlDeviceGetSupportedGraphicsClocks(nv_device dev, unsigned mem, unsigned *n,
                                         unsigned *ret);
int nvmlDeviceGetTemperatureThreshold(nv_device dev, unsigned type, unsigned *ret);
int nvmlDeviceGetMigMode(nv_device dev, unsigned *ret_now, unsigned *ret_pending);
int nvmlDeviceGetMaxMigDeviceCount(nv_device dev, unsigned *ret);
int nvmlDeviceIsMigDeviceHandle(nv_device dev, unsigned *ret);
int nvmlDeviceGetComputeMode(nv_device dev, unsigned *ret);
int nvmlDeviceGetDisplayMode(nv_device dev, unsigned *ret);
int nvmlDeviceGetDisplayActive(nv_device dev, unsigned *ret);
int nvmlDeviceGetNumFans(nv_device dev, unsigned *ret);
int nvmlDeviceGetPowerManagementMode(nv_device dev, unsigned *ret);

/* power.c */
int nvmlDeviceGetPowerUsage(nv_device dev, unsigned *ret);
int nvmlDeviceGetEnforcedPowerLimit(nv_device dev, unsigned *ret);
int nvmlDeviceGetPowerManagementLimit(nv_device dev, unsigned *ret);
int nvmlDeviceGetPowerManagementDefaultLimit(nv_device dev, unsigned *ret);
int nvmlDeviceGetPowerManagementLimitConstraints(nv_device dev, unsigned *ret_min,
                                                 unsigned *ret_max);
int nvmlDeviceGetTotalEnergyConsumption(nv_device dev, unsigned long long *ret);
int nvmlDeviceGetFieldValues(nv_device dev, int n, struct nv_field_value *values);
int nvmlDeviceClearFieldValues(nv_device dev, int n, struct nv_field_value *values);
int nvmlDeviceGetViolationStatus(nv_device dev, unsigned policy,
                                 struct nv_violation *ret);
int nvmlDeviceGetCurrentClocksEventReasons(nv_device dev, unsigned long long *ret);
int nvmlDeviceGetCurrentClocksThrottleReasons(nv_device dev, unsigned long long *ret);
int nvmlDeviceGetSupportedClocksEventReasons(nv_device dev, unsigned long long *ret);
int nvmlDeviceGetSupportedClocksThrottleReasons(nv_device dev, unsigned long long *ret);
int nvmlDeviceGetPowerSource(nv_device dev, unsigned *ret);
int nvmlDeviceGetPersistenceMode(nv_device dev, unsigned *ret);
int nvmlDeviceSetPowerManagementLimit(nv_device dev, unsigned mw);
int nvmlDeviceSetPowerManagementLimit_v2(nv_device dev, const struct nv_power_value *v);
int nvmlDeviceSetPersistenceMode(nv_device dev, unsigned mode);
int nvmlDeviceSetGpuLockedClocks(nv_device dev, unsigned min_mhz, unsigned max_mhz);
int nvmlDeviceResetGpuLockedClocks(nv_device dev);

/* telemetry.c */
int nvmlDeviceGetTemperature(nv_device dev, unsigned sensor, unsigned *ret);
int nvmlDeviceGetTemperatureV(nv_device dev, struct nv_temperature *ret);
int nvmlDeviceGetUtilizationRates(nv_device dev, struct nv_utilization *ret);
int nvmlDeviceGetEncoderUtilization(nv_device dev, unsigned *ret, unsigned *ret_us);
int nvmlDeviceGetDecoderUtilization(nv_device dev, unsigned *ret, unsigned *ret_us);
int nvmlDeviceGetMemoryInfo(nv_device dev, struct nv_memory *ret);
int nvmlDeviceGetMemoryInfo_v2(nv_device dev, struct nv_memory_v2 *ret);
int nvmlDeviceGetBAR1MemoryInfo(nv_device dev, struct nv_memory *ret);
int nvmlDeviceGetFanSpeed(nv_device dev, unsigned *ret);
int nvmlDeviceGetFanSpeed_v2(nv_device dev, unsigned fan, unsigned *ret);
int nvmlDeviceGetClockInfo(nv_device dev, unsigned type, unsigned *ret);
int nvmlDeviceGetClock(nv_device dev, unsigned type, unsigned id, unsigned *ret);
int nvmlDeviceGetPcieThroughput(nv_device dev, unsigned counter, unsigned *ret);
int nvmlDeviceGetPerformanceState(nv_device dev, unsigned *ret);
int nvmlDeviceGetPowerState(nv_device dev, unsigned *ret);
int nvmlDeviceGetSamples(nv_device dev, unsigned type, unsigned long long since_us,
                         unsigned *ret_type, unsigned *n, struct nv_sample *ret);

/* procs.c */
int nvmlDeviceGetComputeRunningProcesses(nv_device dev, unsigned *n,
                                         struct nv_proc_v1 *ret);
int nvmlDeviceGetComputeRunningProcesses_v2(nv_device dev, unsigned *n,
                                            struct nv_proc_v2 *ret);
int nvmlDeviceGetComputeRunningProcesses_v3(nv_device dev, unsigned *n,
                                            struct nv_proc_v2 *ret);
int nvmlDeviceGetGraphicsRunningProcesses(nv_device dev, unsigned *n,
                                          struct nv_proc_v1 *ret);
int nvmlDeviceGetGraphicsRunningProcesses_v2(nv_device dev, unsigned *n,
                                             struct nv_proc_v2 *ret);
int nvmlDeviceGetGraphicsRunningProcesses_v3(nv_device dev, unsigned *n,
                                             struct nv_proc_v2 *ret);
int nvmlDeviceGetMPSComputeRunningProcesses(nv_device dev, unsigned *n,
                                            struct nv_proc_v1 *ret);
int nvmlDeviceGetMPSComputeRunningProcesses_v2(nv_device dev, unsigned *n,
                                               struct nv_proc_v2 *ret);
int nvmlDeviceGetMPSComputeRunningProcesses_v3(nv_device dev, unsigned *n,
                                               struct nv_proc_v2 *ret);
int nvmlDeviceGetProcessUtilization(nv_device dev, struct nv_proc_util *ret, unsigned *n,
                                    unsigned long long since_us);

#endif
