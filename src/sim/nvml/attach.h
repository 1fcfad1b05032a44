/* How a call finds its world and its board.  No mutexes and no threads: a process may
 * fork at any moment, and a reader that dies leaves no state behind.
 */
#ifndef SIM_NVML_ATTACH_H
#define SIM_NVML_ATTACH_H

#include "sim/nvml/abi.h"
#include "sim/state.h"

enum { NV_PATH_MAX = 512 };

/* The page of the world beside this library's own file, mapped once.  SIM_OK,
 * SIM_NO_DRIVER (none there, or it has stopped), SIM_NO_PERMISSION, or 18 (a world
 * of another version of this library).
 */
int nv_world(const struct sim_page **ret);
enum { NV_VERSION_MISMATCH = 18 };

/* The path of the state directory of this library's file, whether or not a world lives
 * there.  SIM_OK or SIM_NO_DRIVER.
 */
int nv_state_dir(char *ret, size_t size);

/* True where the world's writer still lives. */
bool nv_world_lives(const struct sim_page *page);

/* nvmlInit() and nvmlShutdown(): counted. */
int nv_init(bool attach);
int nv_shutdown(void);

/* The page, after nvmlInit() only. */
int nv_page(const struct sim_page **ret);

/* The boards that this process may use, as they were at nvmlInit(): sim/devices.h. */
uint64_t nv_may(void);

/* The handle of board i; the page has checked i.  It takes calls once the board is
 * attached (users.h).
 */
nv_device nv_handle_of(unsigned i);

/* The constant properties of a board.  The calls succeed on a board that hangs and fail
 * on a board that is lost.
 */
int nv_identity(nv_device dev, const struct sim_identity **ret);
int nv_index(nv_device dev, unsigned *ret);

/* The readings of a board; blocks while the board hangs. */
int nv_readings(nv_device dev, struct sim_readings *ret);
/* The readings of a board even while it hangs. */
int nv_peek(nv_device dev, struct sim_readings *ret);
/* Readings and constant properties; blocks likewise. */
int nv_readings_of(nv_device dev, struct sim_readings *ret,
                   const struct sim_identity **ret_id);
int nv_procs(nv_device dev, struct sim_procs *ret);

/* A call that gives one value of struct sim_readings `now`. */
#define NV_READ(function, type, value)              \
    NVML_API int function(nv_device dev, type *ret) \
    {                                               \
        struct sim_readings now;                    \
        if (!ret)                                   \
            return SIM_INVALID;                     \
        int r = nv_readings(dev, &now);             \
        if (!r)                                     \
            *ret = (type)(value);                   \
        return r;                                   \
    }

/* Sends a request to the writer and waits up to ten seconds for the answer. */
int nv_request(nv_device dev, enum sim_op op, uint64_t a, uint64_t b);

/* Copies text: SIM_TOO_SMALL where it does not fit. */
int nv_text(char *to, unsigned size, const char *from);

/* UTC in microseconds, for time stamps. */
int64_t nv_utc_us(void);

#endif
