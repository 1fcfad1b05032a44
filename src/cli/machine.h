/* Facts about NVIDIA boards from the machine, without NVML. */
#ifndef CLI_MACHINE_H
#define CLI_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum machine_node { MACHINE_NODE_ABSENT, MACHINE_NODE_OPEN, MACHINE_NODE_CLOSED };

enum { MACHINE_WRITERS_MAX = 8 };

/* A running program that may set limits. */
struct machine_writer {
    pid_t pid;
    char name[24];
    char library[256]; /* after --library on its command line; "" none */
};

struct machine {
    bool pci_known;         /* the bus could be read */
    unsigned nvidia_boards; /* display devices of NVIDIA on it */
    bool module;            /* the NVIDIA driver is loaded */
    bool nouveau;           /* the nouveau driver is loaded */
    bool wsl;               /* the Windows driver behind /dev/dxg */
    bool container;
    enum machine_node nvidiactl; /* access to the driver's control device */
    char node_group[40];         /* its group, if membership gives access; "": none */
    bool sudo;                   /* sudo is installed */
    struct machine_writer writer[MACHINE_WRITERS_MAX];
    size_t n_writers;
};

/* root: "", or the folder that tests use as /. */
void machine_read(const char *root, struct machine *ret);

#endif
