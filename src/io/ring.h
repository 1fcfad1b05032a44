/* A ring of sources, to find and free those that are left. */
#ifndef IO_RING_H
#define IO_RING_H

struct loop_link {
    struct loop_link *prev, *next;
};

static inline void loop_link_init(struct loop_link *head)
{
    head->prev = head->next = head;
}

/* Appends the link. */
static inline void loop_link_add(struct loop_link *head, struct loop_link *link)
{
    link->prev = head->prev;
    link->next = head;
    head->prev->next = link;
    head->prev = link;
}

static inline void loop_link_remove(struct loop_link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    loop_link_init(link);
}

#endif
