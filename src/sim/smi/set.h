/* Limits, clocks and persistence: requests that the library makes for the asking user. */
#ifndef SIM_SMI_SET_H
#define SIM_SMI_SET_H

#include "sim/smi/lib.h"

/* On the boards chosen, one after the other until one refuses; text: the option's value.
 * An exit status.
 */
int smi_set_limit(const struct smi *smi, const char *text);
int smi_set_clocks(const struct smi *smi, const char *text);
int smi_reset_clocks(const struct smi *smi, const char *text);
int smi_set_persistence(const struct smi *smi, const char *text);

#endif
