/* A GPU under a power cap: power, clock, speed, heat and sensors, as arithmetic.
 *
 * Pure: time is an argument, randomness comes from a seed, nothing is read from
 * the outside.  Everything is simulated.  Boards advance from event to event in
 * closed form, so a year costs no more than the events in it.
 *
 *     board.h     catalogue of boards: limits, clocks, heat, sensors
 *     workload.h  what a training step costs on a board; steady state at a cap
 *     sensor.h    what a generation's sensors make of true power
 *     gpu.h       one board in time: caps, loads, faults, readings
 *     job.h       a training job on one or more boards
 *
 * A program that wants figures of the steady state alone needs plant_steady().
 * A world in time: plant_gpu_new() for each board, plant_job_new() for each job,
 * then plant_gpu_advance() before anything is read or set (a board with a job
 * takes the job and its other boards along).
 */
#ifndef PLANT_PLANT_H
#define PLANT_PLANT_H

#include "plant/board.h"
#include "plant/gpu.h"
#include "plant/job.h"
#include "plant/sensor.h"
#include "plant/workload.h"

#endif
