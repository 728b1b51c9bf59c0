/* SPDX-License-Identifier: Apache-2.0 */
/* Where our files live. Paths are absolute, without a trailing slash, and the caller's to free.
 */
#ifndef KCAP_LIB_PATHS_H
#define KCAP_LIB_PATHS_H

/* The state directory: override (KCAP_STATE_DIR) when it is not empty, else
 * HOME/.local/state/kcap, with HOME from the user database when home is empty. Made with mode
 * 0700 when missing. Returns 0 or -errno
 * (-EINVAL: a relative path; -EPERM: not ours, or open to others). *ret is set whenever the
 * path is known, also on failure, so that the message can name it; else NULL. */
int paths_state_dir(const char *override, const char *home, char **ret);

/* The same path, when it is known at all; nothing is made or looked at. NULL otherwise. */
char *paths_state_place(const char *override, const char *home);

/* The configuration directory: override (KCAP_CONFIG_DIR) when it is an absolute path, else
 * HOME/.config/kcap. Nothing is made. NULL when out of memory or without any home. */
char *paths_config_dir(const char *override, const char *home);

/* Makes dir and its missing parents, 0700 each. Returns 0 or -errno. */
int paths_make_dir(const char *dir);

/* "DIR/NAME"; NULL when out of memory. */
char *paths_join(const char *dir, const char *name);

/* The directory of the running executable; NULL when it cannot be told. */
char *paths_exe_dir(void);

/* One of our programs: beside the running executable, else in the installed bindir. NULL when
 * it is in neither. */
char *paths_program(const char *name);

/* The top of the repository that holds dir: the nearest directory with a .git. NULL when there
 * is none. */
char *paths_repository_top(const char *dir);

#endif
