/* One line for a human about what went wrong; the caller owns and passes it. */
#ifndef UNDERWATT_ERROR_H
#define UNDERWATT_ERROR_H

typedef struct uw_error {
    char text[200];
} uw_error;

#endif
