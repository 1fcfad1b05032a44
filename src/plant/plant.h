/* A GPU under a power cap: power, clock, speed, heat and sensors, as arithmetic.
 *
 * Owns: the catalogue of boards and workloads, and the state of each simulated board
 * and job.
 * May touch: base/ alone.  Time is an argument, randomness comes from a seed, and no
 * file, clock or environment variable is read.
 * Thread: the caller's; no lock and no global state.
 * Explained in: docs/architecture.md.
 *
 * Boards advance from event to event in closed form: a simulated year costs no more
 * than the events in it.
 *
 *     board.h     catalogue of boards: limits, clocks, heat, sensors
 *     workload.h  what a training step costs on a board; steady state at a cap
 *     sensor.h    what a generation's sensors make of true power
 *     gpu.h       one board in time: caps, loads, faults, readings
 *     job.h       a training job on one or more boards
 *
 * plant_steady() gives figures of the steady state.  A world in time needs
 * plant_gpu_new() for each board, plant_job_new() for each job, and
 * plant_gpu_advance() before each read or set.  Advancing a board advances its job
 * and the other boards of that job.
 */
#ifndef PLANT_PLANT_H
#define PLANT_PLANT_H

#include "plant/board.h"
#include "plant/gpu.h"
#include "plant/job.h"
#include "plant/sensor.h"
#include "plant/workload.h"

#endif
