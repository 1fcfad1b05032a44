/* Ownership bound to a scope: auto_(x_free) frees at the end of the block, take()
 * transfers the pointer before that.
 */
#ifndef BASE_AUTO_H
#define BASE_AUTO_H

#define auto_(fn) __attribute__((cleanup(fn##_p)))
#define DEFINE_AUTO(type, fn)          \
    static inline void fn##_p(type *p) \
    {                                  \
        fn(*p);                        \
    }                                  \
    _Static_assert(1, "takes the semicolon")

/* Gives up ownership: yields the pointer and sets the variable to NULL. */
#define take(p)                     \
    __extension__({                 \
        __typeof__(p) taken_ = (p); \
        (p) = NULL;                 \
        taken_;                     \
    })

#define n_elements(array) (sizeof(array) / sizeof *(array))

/* free() and close() for auto_(mem_free), auto_(fd_close). */
void mem_free_p(void *p_of_pointer);
void fd_close_p(int *fd); /* -1: no-op */
/* take() for descriptors: sets the variable to -1. */
static inline int fd_take(int *fd)
{
    int taken = *fd;

    *fd = -1;
    return taken;
}
void file_close_p(void *p_of_file);
void dir_close_p(void *p_of_dir);

#endif
