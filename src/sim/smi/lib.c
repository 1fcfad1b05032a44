#include "sim/smi/lib.h"

#include <dlfcn.h>
#include <string.h>

#include "base/auto.h"
#include "base/units.h"
#include "sim/nvml/abi.h"

smi_fn smi_find(const struct smi *smi, const char *function)
{
    smi_fn found;
    void *symbol = dlsym(smi->library, function);

    memcpy(&found, &symbol, sizeof found);
    return found;
}

int smi_text(const struct smi *smi, nv_device dev, const char *function,
             char ret[SMI_TEXT])
{
    typedef int (*text_fn)(nv_device, char *, unsigned);
    text_fn call = (text_fn)smi_find(smi, function);

    return call ? call(dev, ret, SMI_TEXT) : SMI_NO_FUNCTION;
}

int smi_u32(const struct smi *smi, nv_device dev, const char *function, unsigned *ret)
{
    typedef int (*u32_fn)(nv_device, unsigned *);
    u32_fn call = (u32_fn)smi_find(smi, function);

    return call ? call(dev, ret) : SMI_NO_FUNCTION;
}

int smi_u32_of(const struct smi *smi, nv_device dev, const char *function, unsigned which,
               unsigned *ret)
{
    typedef int (*u32_of_fn)(nv_device, unsigned, unsigned *);
    u32_of_fn call = (u32_of_fn)smi_find(smi, function);

    return call ? call(dev, which, ret) : SMI_NO_FUNCTION;
}

int smi_pair(const struct smi *smi, nv_device dev, const char *function, unsigned *ret_a,
             unsigned *ret_b)
{
    typedef int (*pair_fn)(nv_device, unsigned *, unsigned *);
    pair_fn call = (pair_fn)smi_find(smi, function);

    return call ? call(dev, ret_a, ret_b) : SMI_NO_FUNCTION;
}

const char *smi_error(const struct smi *smi, int result)
{
    typedef const char *(*error_fn)(int);
    error_fn call = (error_fn)smi_find(smi, "nvmlErrorString");

    return call ? call(result) : "Unknown Error";
}

int smi_exit_of(int result)
{
    return result > 0 && result < SMI_OTHER ? result : result == 0 ? SMI_OK : SMI_OTHER;
}

void smi_versions(const struct smi *smi, char ret_driver[SMI_TEXT],
                  char ret_cuda[SMI_TEXT])
{
    typedef int (*driver_fn)(char *, unsigned);
    typedef int (*cuda_fn)(int *);
    driver_fn driver = (driver_fn)smi_find(smi, "nvmlSystemGetDriverVersion");
    cuda_fn cuda = (cuda_fn)smi_find(smi, "nvmlSystemGetCudaDriverVersion_v2");
    int v = 0;

    if (!driver || driver(ret_driver, SMI_TEXT))
        ret_driver[0] = '\0';
    ret_cuda[0] = '\0';
    if (cuda && cuda(&v) == 0)
        (void)snprintf(ret_cuda, SMI_TEXT, "%d.%d", v / 1000, v % 1000 / 10);
}

static int no_driver(int result)
{
    (void)printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
                 "driver. The simulated node has ended, or its driver is unloaded.\n\n");
    return smi_exit_of(result);
}

int smi_open(struct smi *ret)
{
    typedef int (*init_fn)(void);
    typedef int (*count_fn)(unsigned *);
    struct smi smi = {.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};

    if (!smi.library) {
        (void)printf("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. "
                     "Run this program by underwatt-sim exec.\n\n");
        return SMI_NO_LIBRARY;
    }
    if (!dlsym(smi.library, "uw_sim_info")) { /* never touches real boards */
        (void)printf(
            "This nvidia-smi is the one of simulated nodes, and the library is not "
            "simulated: run it by underwatt-sim exec.\n");
        smi_close(&smi);
        return SMI_OTHER;
    }
    init_fn init = (init_fn)smi_find(&smi, "nvmlInit_v2");
    count_fn count = (count_fn)smi_find(&smi, "nvmlDeviceGetCount_v2");
    int r = init && count ? init() : SMI_NO_FUNCTION;
    if (!r)
        r = count(&smi.n);
    if (r) {
        smi_close(&smi);
        return no_driver(r);
    }
    smi.n = smi.n < SIM_BOARDS_MAX ? smi.n : SIM_BOARDS_MAX;
    smi.n_chosen = smi.n;
    for (unsigned i = 0; i < smi.n; i++)
        smi.chosen[i] = i;
    *ret = smi;
    return SMI_OK;
}

void smi_close(struct smi *smi)
{
    if (smi->library)
        (void)dlclose(smi->library);
    *smi = (struct smi){0};
}

static int by_text(const struct smi *smi, const char *word, unsigned *ret)
{
    static const char *const searches[] = {"nvmlDeviceGetHandleByUUID",
                                           "nvmlDeviceGetHandleBySerial",
                                           "nvmlDeviceGetHandleByPciBusId_v2"};
    typedef int (*search_fn)(const char *, nv_device *);
    int r = SIM_NOT_FOUND;
    nv_device dev;

    for (size_t i = 0; i < n_elements(searches) && r == SIM_NOT_FOUND; i++) {
        search_fn search = (search_fn)smi_find(smi, searches[i]);
        r = search ? search(word, &dev) : SMI_NO_FUNCTION;
    }
    return r ? r : smi_u32(smi, dev, "nvmlDeviceGetIndex", ret);
}

static int by_word(const struct smi *smi, const char *word, unsigned *ret)
{
    uw_error err = {""};
    uint64_t index;

    if (parse_u64(word, &index, &err) == 0 && index < smi->n) {
        *ret = (unsigned)index;
        return SIM_OK;
    }
    return by_text(smi, word, ret);
}

int smi_choose(struct smi *smi, const char *list)
{
    char word[SMI_TEXT];

    smi->n_chosen = 0;
    while (*list && smi->n_chosen < SIM_BOARDS_MAX) {
        size_t n = strcspn(list, ",");
        (void)snprintf(word, sizeof word, "%.*s", (int)n, list);
        if (by_word(smi, word, &smi->chosen[smi->n_chosen])) {
            (void)printf("No devices were found\n");
            return SIM_NOT_FOUND;
        }
        smi->n_chosen++;
        list += n + (list[n] == ',');
    }
    return SMI_OK;
}

int smi_handle(const struct smi *smi, unsigned i, nv_device *ret)
{
    typedef int (*handle_fn)(unsigned, nv_device *);
    handle_fn by_index = (handle_fn)smi_find(smi, "nvmlDeviceGetHandleByIndex_v2");

    int r = by_index ? by_index(i, ret) : SMI_NO_FUNCTION;
    if (r)
        (void)printf("Unable to determine the device handle for GPU%u: %s\n", i,
                     smi_error(smi, r));
    return smi_exit_of(r);
}
