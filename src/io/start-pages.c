#include "io/start-pages.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Code that the linker has changed for this process is not in the file. */
static bool is_relocated(const struct dl_phdr_info *object)
{
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_DYNAMIC)
            continue;
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): the linker tells addresses so */
        const ElfW(Dyn) *entry = (const void *)(object->dlpi_addr + part->p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_TEXTREL ||
                (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL)))
                return true;
    }
    return false;
}

static int drop(struct dl_phdr_info *object, size_t size, void *user)
{
    uintptr_t page = *(const uintptr_t *)user;
    (void)size;

    if (is_relocated(object))
        return 0;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_W))
            continue;
        uintptr_t at = object->dlpi_addr + part->p_vaddr;
        uintptr_t from = at & ~(page - 1), to = (at + part->p_filesz) & ~(page - 1);
        if (to > from) /* otherwise less than a page */
            /* NOLINTNEXTLINE(performance-no-int-to-ptr): as above */
            (void)madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 0;
}

void start_pages_drop(void)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)dl_iterate_phdr(drop, &page);
}
