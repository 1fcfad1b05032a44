/* The tables behind plant_workload_find(). */
#ifndef PLANT_TABLE_H
#define PLANT_TABLE_H

#include "plant/workload.h"

enum { PLANT_FITTED = 12, PLANT_TYPICAL = 18 };
extern const struct plant_workload plant_fitted[PLANT_FITTED];
/* Boards without published sweeps of these networks. */
extern const struct plant_workload plant_typical[PLANT_TYPICAL];

#endif
