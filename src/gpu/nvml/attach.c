/* Detaching of single boards.  NVML can only detach a process from all boards at once, so
 * the others are attached again: nvmlShutdown(), nvmlInitWithFlags() with
 * NVML_INIT_FLAG_NO_ATTACH, then a handle for each remaining board by its bus id.
 * According to the API Reference Manual, nvmlDeviceGetHandleByPciBusId() initialises only
 * the target (and an SLI board's master); a search by UUID or serial number may
 * initialise other boards.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "gpu/nvml/dev.h"

static int check(const struct lib *lib, uint64_t away, uw_error *err)
{
    if (!lib->abi.init_flags || !lib->abi.by_bus)
        return fail(err, -ENOTSUP,
                    "%s is missing: this driver cannot detach single boards; stop "
                    "underwattd and underwatt-actuator for a reset",
                    lib->abi.init_flags ? "nvmlDeviceGetHandleByPciBusId"
                                        : "nvmlInitWithFlags");
    for (unsigned i = 0; i < lib->n; i++)
        if (!(away >> i & 1) && !lib->dev[i].info.pci_bus_id[0])
            return fail(err, -ENOTSUP,
                        "the bus id of board %u is unknown: it cannot stay attached "
                        "while another board is detached",
                        i);
    return 0;
}

/* Initialises NVML without attaching any board. */
static int begin(struct lib *lib, uw_error *err)
{
    nvml_result r = lib->abi.init_flags(NVML_INIT_NO_ATTACH);

    if (r != NVML_OK)
        return nvml_fail(&lib->abi, r, "nvmlInitWithFlags", err);
    lib->begun = true;
    return 0;
}

int lib_attach(struct lib *lib, uint64_t away, uw_error *err)
{
    if (!lib_close_abandoned() || atomic_load(&lib->busy) > 0)
        return fail(err, -EBUSY, "a call hangs in the driver");
    int r = check(lib, away, err);
    if (r < 0)
        return r;
    (void)lib->abi.shutdown();
    lib->begun = false;
    for (unsigned i = 0; i < lib->n; i++) {
        lib->dev[i].handle = NULL;
        (void)fail(&lib->dev[i].error, -ENODEV, "the driver was closed");
    }
    r = begin(lib, err);
    return r < 0 ? r : lib_ask(lib, dev_take_handle, away, err);
}

/* Checks that every board that answers has the known UUID. */
static int compare(const struct lib *lib, const struct gpu_open_opts *opts, uw_error *err)
{
    for (unsigned i = 0; i < lib->n; i++) {
        const char *is = lib->dev[i].info.uuid, *was = opts->known[i].uuid;
        if (lib->dev[i].handle && is[0] && was[0] && strcmp(is, was) != 0)
            return fail(err, -ESTALE, "%s is at %s now, which was %s", is,
                        opts->known[i].pci_bus_id, was);
    }
    return 0;
}

int lib_begin_known(struct lib *lib, const struct gpu_open_opts *opts, uw_error *err)
{
    lib->n = opts->n_known < NVML_BOARDS_MAX ? (unsigned)opts->n_known : NVML_BOARDS_MAX;
    lib->dev = calloc(lib->n, sizeof *lib->dev);
    if (!lib->dev)
        return fail(err, -ENOMEM, "no memory for %u boards", lib->n);
    for (unsigned i = 0; i < lib->n; i++) {
        lib->dev[i].lib = lib;
        lib->dev[i].info = opts->known[i];
        lib->dev[i].info.index = i;
    }
    int r = check(lib, opts->away, err);
    if (r == 0)
        r = begin(lib, err);
    if (r < 0)
        return r;
    lib_note_versions(lib);
    r = lib_ask(lib, dev_identify, opts->away, err);
    return r == 0 ? compare(lib, opts, err) : r;
}
