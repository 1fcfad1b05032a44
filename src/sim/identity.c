#include "sim/identity.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/rng.h"
#include "gpu/gpu.h"

/* From the data sheets; PCI ids from the public PCI ID repository. */
static const struct {
    const char *key;
    uint32_t pci_device_id, cc_major, cc_minor, cores, fan, pcie_gen;
} models[] = {
    {"v100", 0x1db110de, 7, 0, 5120, 0, 3},   {"rtx6000", 0x1e3010de, 7, 5, 4608, 1, 3},
    {"a100", 0x20b010de, 8, 0, 6912, 0, 4},   {"h100", 0x233010de, 9, 0, 16896, 0, 5},
    {"b200", 0x290110de, 10, 0, 20480, 0, 5},
};

enum { FIRST_BUS = 0x18, SLOWDOWN_C = 87, SHUTDOWN_C = 92, PCIE_WIDTH = 16 };

static void make_uuid(uint64_t seed, unsigned index, char *ret, size_t size)
{
    struct rng g;

    rng_init(&g, seed * 0x9e3779b97f4a7c15u + index);
    uint64_t a = rng_u64(&g);
    uint64_t b = rng_u64(&g);
    (void)snprintf(ret, size, "GPU-%08x-%04x-4%03x-8%03x-%012llx", (unsigned)(a >> 32),
                   (unsigned)(a >> 16) & 0xffffu, (unsigned)a & 0xfffu,
                   (unsigned)(b >> 52), (unsigned long long)b & 0xffffffffffffull);
}

static uint32_t abilities(const struct sim_machine_board *board)
{
    const struct plant_board *p = &board->plant;
    uint32_t can = board->no_clock_locks ? 0 : SIM_HAS_LOCKED_CLOCKS;

    if (p->sensor.counter != PLANT_COUNTER_NONE)
        can |= SIM_HAS_ENERGY;
    if (p->sensor.has_instant)
        can |= SIM_HAS_INSTANT;
    if (p->sensor.has_average)
        can |= SIM_HAS_AVERAGE;
    return can;
}

void sim_identity_fill(const struct sim_machine_board *board, uint64_t seed,
                       unsigned index, struct sim_identity *ret)
{
    const struct plant_board *p = &board->plant;

    memset(ret, 0, sizeof *ret);
    if (board->uuid[0])
        (void)snprintf(ret->uuid, sizeof ret->uuid, "%s", board->uuid);
    else
        make_uuid(seed, index, ret->uuid, sizeof ret->uuid);
    (void)snprintf(ret->name, sizeof ret->name, "%s" GPU_NAME_SIMULATED, p->name);
    (void)snprintf(ret->serial, sizeof ret->serial, "SIM%010llu",
                   (unsigned long long)(seed % 10000000u) * 1000u + index);
    ret->pci_bus = FIRST_BUS + index;
    (void)snprintf(ret->bus_id, sizeof ret->bus_id, "00000000:%02X:00.0", ret->pci_bus);
    ret->arch = p->arch;
    ret->abilities = abilities(board);
    ret->minor = board->minor;
    ret->mig = board->mig;
    ret->min_mw = p->min_mw;
    ret->max_mw = p->max_mw;
    ret->default_mw = p->default_mw;
    ret->sm_min_mhz = p->sm_min_mhz;
    ret->sm_max_mhz = p->sm_max_mhz;
    ret->sm_step_mhz = p->sm_step_mhz;
    ret->mem_max_mhz = p->mem_mhz;
    ret->memory_bytes = p->memory_bytes;
    ret->slowdown_c = SLOWDOWN_C;
    ret->shutdown_c = SHUTDOWN_C;
    ret->pcie_width = PCIE_WIDTH;
    ret->counter_period_ms = (uint32_t)(p->sensor.counter_period_ns / 1000000u);
    for (size_t i = 0; i < n_elements(models); i++)
        if (strcmp(models[i].key, p->key) == 0) {
            ret->pci_device_id = models[i].pci_device_id;
            ret->pci_subsystem_id = models[i].pci_device_id;
            ret->cc_major = models[i].cc_major;
            ret->cc_minor = models[i].cc_minor;
            ret->cores = models[i].cores;
            ret->fan = models[i].fan;
            ret->pcie_gen = models[i].pcie_gen;
        }
}
