/* A file system for tests that treats a folder as an NFS client treats its server, and on purpose badly.
 *
 *   client FOLDER MOUNTPOINT CACHE_SECONDS LOSS SEED
 *
 * - Names and attributes are cached, also that a name is not there: for CACHE_SECONDS this mount may not see what others did. Opening a
 *   file or a folder asks the server, as NFS does (close-to-open): of a folder it is known then which names are there.
 * - What is written to a file reaches the folder when the file is closed or synced. What is opened is read as it is there then.
 * - LOSS is the share of calls whose reply gets lost after they were done. They are sent again, and answered with what a server says that
 *   finds them done: a file that was made is there already, a file that was removed or renamed is not there. How many is printed in the end.
 */
#define FUSE_USE_VERSION 31
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int root;
static double cache, loss;
static unsigned long long seed, losses;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* What was written to an open file and is not in the folder yet. */
struct piece {
	struct piece *next;
	off_t at;
	size_t length;
	char bytes[];
};
struct handle {
	struct handle *next;
	int file;
	int append;
	struct piece *first, **last;
};
static struct handle *handles;

/* What is known of a name, and for how long. */
struct known {
	struct known *next;
	char *path;
	double until;
	int error;
	struct stat stat;
};
static struct known *table[4096];

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* The place of a name in the table; the lock is held. */
static struct known **place(const char *path)
{
	unsigned hash = 5381;
	for (const char *at = path; *at; at++)
		hash = hash * 33 + (unsigned char)*at;
	struct known **known = &table[hash % 4096];
	while (*known && strcmp((*known)->path, path))
		known = &(*known)->next;
	return known;
}

static void forget(const char *path)
{
	pthread_mutex_lock(&lock);
	struct known **known = place(path);
	if (*known)
		(*known)->until = 0;
	pthread_mutex_unlock(&lock);
}

/* Forgets what is right below a folder. */
static void forget_below(const char *folder)
{
	size_t length = folder[1] ? strlen(folder) : 0;
	pthread_mutex_lock(&lock);
	for (int at = 0; at < 4096; at++)
		for (struct known *known = table[at]; known; known = known->next)
			if (!strncmp(known->path, folder, length) && known->path[length] == '/' && !strchr(known->path + length + 1, '/'))
				known->until = 0;
	pthread_mutex_unlock(&lock);
}

static const char *below(const char *path) { return path[1] ? path + 1 : "."; }

static int result(int done) { return done < 0 ? -errno : 0; }

/* Whether the reply to a call is lost. */
static int lost(void)
{
	pthread_mutex_lock(&lock);
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	int is_lost = (seed >> 11) / 9007199254740992.0 < loss;
	losses += is_lost;
	pthread_mutex_unlock(&lock);
	return is_lost;
}

/* Brings what was written through a handle into the folder; the lock is held. */
static int settle(struct handle *handle)
{
	int error = 0;
	for (struct piece *piece = handle->first, *next; piece; piece = next) {
		next = piece->next;
		ssize_t done = handle->append ? write(handle->file, piece->bytes, piece->length)
					      : pwrite(handle->file, piece->bytes, piece->length, piece->at);
		if (done != (ssize_t)piece->length && !error)
			error = done < 0 ? -errno : -EIO;
		free(piece);
	}
	handle->first = NULL;
	handle->last = &handle->first;
	return error;
}

/* A client knows what it has written itself. */
static void settle_all(void)
{
	pthread_mutex_lock(&lock);
	for (struct handle *handle = handles; handle; handle = handle->next)
		settle(handle);
	pthread_mutex_unlock(&lock);
}

static int keep(int file, struct fuse_file_info *info)
{
	if (file < 0)
		return -errno;
	struct handle *handle = calloc(1, sizeof *handle);
	handle->file = file;
	handle->append = (info->flags & O_APPEND) != 0;
	handle->last = &handle->first;
	pthread_mutex_lock(&lock);
	handle->next = handles;
	handles = handle;
	pthread_mutex_unlock(&lock);
	info->fh = (uint64_t)(uintptr_t)handle;
	/* What is read comes from the folder, as after an open over NFS. */
	info->direct_io = 1;
	return 0;
}

static struct handle *of(struct fuse_file_info *info) { return (struct handle *)(uintptr_t)info->fh; }

static int do_getattr(const char *path, struct stat *stat, struct fuse_file_info *info)
{
	(void)info;
	settle_all();
	pthread_mutex_lock(&lock);
	struct known **at = place(path), *known = *at;
	if (!known) {
		known = *at = calloc(1, sizeof *known);
		known->path = strdup(path);
	}
	if (known->until <= now()) {
		known->error = result(fstatat(root, below(path), &known->stat, AT_SYMLINK_NOFOLLOW));
		known->until = now() + cache;
	}
	*stat = known->stat;
	int error = known->error;
	pthread_mutex_unlock(&lock);
	return error;
}

static int do_opendir(const char *path, struct fuse_file_info *info)
{
	(void)info;
	forget_below(path);
	return 0;
}

static int do_readdir(const char *path, void *buffer, fuse_fill_dir_t fill, off_t offset, struct fuse_file_info *info,
		      enum fuse_readdir_flags flags)
{
	(void)offset, (void)info, (void)flags;
	int file = openat(root, below(path), O_RDONLY | O_DIRECTORY);
	DIR *folder = file < 0 ? NULL : fdopendir(file);
	if (!folder)
		return -errno;
	for (struct dirent *entry; (entry = readdir(folder));)
		fill(buffer, entry->d_name, NULL, 0, 0);
	closedir(folder);
	return 0;
}

static int do_open(const char *path, struct fuse_file_info *info)
{
	settle_all();
	forget(path);
	int file = openat(root, below(path), info->flags & ~(O_CREAT | O_EXCL));
	/* The name was found in the cache, and the file is gone. */
	if (file < 0 && errno == ENOENT)
		return -ESTALE;
	return keep(file, info);
}

static int do_create(const char *path, mode_t mode, struct fuse_file_info *info)
{
	forget(path);
	int file = openat(root, below(path), info->flags | O_CREAT, mode);
	if (file >= 0 && (info->flags & O_EXCL) && lost()) {
		close(file);
		return -EEXIST;
	}
	return keep(file, info);
}

static int do_read(const char *path, char *bytes, size_t length, off_t at, struct fuse_file_info *info)
{
	(void)path;
	ssize_t done = pread(of(info)->file, bytes, length, at);
	return done < 0 ? -errno : (int)done;
}

static int do_write(const char *path, const char *bytes, size_t length, off_t at, struct fuse_file_info *info)
{
	if (path)
		forget(path);
	struct piece *piece = malloc(sizeof *piece + length);
	if (!piece)
		return -ENOMEM;
	*piece = (struct piece){.at = at, .length = length};
	memcpy(piece->bytes, bytes, length);
	pthread_mutex_lock(&lock);
	*of(info)->last = piece;
	of(info)->last = &piece->next;
	pthread_mutex_unlock(&lock);
	return (int)length;
}

static int do_flush(const char *path, struct fuse_file_info *info)
{
	(void)path;
	pthread_mutex_lock(&lock);
	int error = settle(of(info));
	pthread_mutex_unlock(&lock);
	return error;
}

static int do_fsync(const char *path, int only_data, struct fuse_file_info *info)
{
	(void)only_data;
	return do_flush(path, info);
}

static int do_release(const char *path, struct fuse_file_info *info)
{
	(void)path;
	struct handle *handle = of(info);
	pthread_mutex_lock(&lock);
	settle(handle);
	for (struct handle **at = &handles; *at; at = &(*at)->next)
		if (*at == handle) {
			*at = handle->next;
			break;
		}
	pthread_mutex_unlock(&lock);
	close(handle->file);
	free(handle);
	return 0;
}

static int do_truncate(const char *path, off_t length, struct fuse_file_info *info)
{
	forget(path);
	settle_all();
	if (info)
		return result(ftruncate(of(info)->file, length));
	int file = openat(root, below(path), O_WRONLY);
	if (file < 0)
		return -errno;
	int done = result(ftruncate(file, length));
	close(file);
	return done;
}

static int do_mkdir(const char *path, mode_t mode)
{
	forget(path);
	int done = result(mkdirat(root, below(path), mode));
	return done == 0 && lost() ? -EEXIST : done;
}

static int do_rmdir(const char *path)
{
	forget(path);
	int done = result(unlinkat(root, below(path), AT_REMOVEDIR));
	return done == 0 && lost() ? -ENOENT : done;
}

static int do_unlink(const char *path)
{
	forget(path);
	int done = result(unlinkat(root, below(path), 0));
	return done == 0 && lost() ? -ENOENT : done;
}

static int do_rename(const char *from, const char *to, unsigned flags)
{
	settle_all();
	if (flags)
		return -EINVAL;
	int done = result(renameat(root, below(from), root, below(to)));
	/* A folder takes along what is in it. */
	pthread_mutex_lock(&lock);
	for (int at = 0; at < 4096; at++)
		for (struct known *known = table[at]; known; known = known->next)
			if (!strncmp(known->path, from, strlen(from)) || !strncmp(known->path, to, strlen(to)))
				known->until = 0;
	pthread_mutex_unlock(&lock);
	return done == 0 && lost() ? -ENOENT : done;
}

static int do_chmod(const char *path, mode_t mode, struct fuse_file_info *info)
{
	forget(path);
	(void)info;
	return result(fchmodat(root, below(path), mode, 0));
}

static int do_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *info)
{
	forget(path);
	(void)info;
	settle_all();
	return result(utimensat(root, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static void *do_init(struct fuse_conn_info *connection, struct fuse_config *config)
{
	(void)connection;
	/* The cache of the system knows only times; it has none here. */
	config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
	config->hard_remove = 1;
	return NULL;
}

static const struct fuse_operations operations = {
	.init = do_init, .getattr = do_getattr, .opendir = do_opendir, .readdir = do_readdir, .open = do_open, .create = do_create,
	.read = do_read, .write = do_write, .flush = do_flush, .fsync = do_fsync, .release = do_release,
	.truncate = do_truncate, .mkdir = do_mkdir, .rmdir = do_rmdir, .unlink = do_unlink, .rename = do_rename,
	.chmod = do_chmod, .utimens = do_utimens,
};

int main(int count, char **words)
{
	if (count != 6) {
		fprintf(stderr, "client FOLDER MOUNTPOINT CACHE_SECONDS LOSS SEED\n");
		return 2;
	}
	root = open(words[1], O_RDONLY | O_DIRECTORY);
	if (root < 0) {
		perror(words[1]);
		return 1;
	}
	cache = atof(words[3]);
	loss = atof(words[4]);
	seed = strtoull(words[5], NULL, 10) * 2654435761ULL + 1;
	char *arguments[] = {words[0], "-f", words[2], NULL};
	int status = fuse_main(3, arguments, &operations, NULL);
	printf("%llu\n", losses);
	return status;
}
