/* A descriptor table of the calling thread's own, in which there is nothing. */
#ifndef PROFIL_TABLE_H
#define PROFIL_TABLE_H

/* Leaves the table that the thread shared; descriptors below `first` are copied, the rest is not
 * there. 0 or -errno, and then the table may still be the shared one. */
int profil_table_leave(unsigned int first);

#endif
