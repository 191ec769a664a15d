// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rig's first process once init.sh has set the scene: run the script, bring
 * what it prints and its exit status to the host, switch off.
 *
 * The script's standard output and error are pipes, so that programs behave as
 * they do in a pipe; what comes out of them goes to /dev/tty1 and /dev/tty2,
 * which are files of the host and keep what was written when the kernel
 * panics. That is the mode "pipes"; in the mode "shell", the script has the
 * terminal /dev/tty1 instead.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

struct stream {
	const char *tty;
	int pipe[2];
	int out;
	int open;
};

static void die(const char *format, ...)
{
	FILE *kmsg = fopen("/dev/kmsg", "w");
	va_list args;

	va_start(args, format);
	if (kmsg) {
		fputs("rig: ", kmsg);
		vfprintf(kmsg, format, args);
		fprintf(kmsg, ": %s\n", strerror(errno));
		fclose(kmsg);
	}
	va_end(args);
	exit(1); /* the kernel panics */
}

/* Programs expect to reach 127.0.0.1. */
static void loopback_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
		die("no loopback interface");
	request.ifr_flags |= IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		die("cannot switch the loopback interface on");
	close(fd);
}

/* A terminal that changes no byte. */
static int open_raw(const char *tty)
{
	int fd = open(tty, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	struct termios mode;

	if (fd < 0 || tcgetattr(fd, &mode) < 0)
		die("cannot open %s", tty);
	cfmakeraw(&mode);
	if (tcsetattr(fd, TCSANOW, &mode) < 0)
		die("cannot set up %s", tty);
	return fd;
}

/*
 * Where computing takes no time, no tick ever ends a busy loop's turn: what a
 * script said before it would not come out. So reading what it says goes
 * first.
 */
static void go_first(void)
{
	struct sched_param param = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) < 0)
		die("cannot raise its own priority");
}

static void open_stream(struct stream *stream)
{
	stream->out = open_raw(stream->tty);
	if (pipe2(stream->pipe, O_CLOEXEC) < 0)
		die("no pipe");
	if (fcntl(stream->pipe[0], F_SETFL, O_NONBLOCK) < 0)
		die("cannot set up a pipe");
	stream->open = 1;
}

/* Pass on what is in the pipe. */
static void drain(struct stream *stream)
{
	char buffer[65536];
	ssize_t size, done, part;

	while (stream->open) {
		size = read(stream->pipe[0], buffer, sizeof(buffer));
		if (size < 0 && errno == EAGAIN)
			return;
		if (size <= 0) {
			stream->open = 0;
			return;
		}
		for (done = 0; done < size; done += part) {
			part = write(stream->out, buffer + done, size - done);
			if (part < 0)
				die("cannot write to %s", stream->tty);
		}
		tcdrain(stream->out);
	}
}

/* The child: @script on the terminal, or on the pipes. */
static void start(struct stream *streams, const char *terminal)
{
	int in = open(terminal ? terminal : "/dev/null", O_RDWR);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (in < 0)
		die("cannot open the standard input");
	/* The kernel would boot again and run the script again, without end. */
	if (prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT) < 0)
		die("cannot forbid rebooting");
	if (terminal)
		ioctl(in, TIOCSCTTY, 0);
	dup2(in, 0);
	dup2(terminal ? in : streams[0].pipe[1], 1);
	dup2(terminal ? in : streams[1].pipe[1], 2);
	if (in > 2)
		close(in);
	execl("./script", "./script", NULL);
	die("cannot run the script");
}

static void nothing(int signal)
{
	(void)signal;
}

/* Until the script ends; its children that live on do not count. */
static int wait_for(pid_t script, struct stream *streams)
{
	struct pollfd polls[2];
	sigset_t none;
	int status, i;
	pid_t pid;

	sigemptyset(&none);
	for (;;) {
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == script)
				return status;
		for (i = 0; i < 2; i++) {
			polls[i].fd = streams[i].open ? streams[i].pipe[0] : -1;
			polls[i].events = POLLIN;
		}
		/* SIGCHLD is let in here only, so none is missed. */
		if (ppoll(polls, 2, NULL, &none) < 0 && errno != EINTR)
			die("ppoll");
		for (i = 0; i < 2; i++)
			drain(&streams[i]);
	}
}

/* As the shell counts: a signal is 128 more than its number. */
static void report(int status)
{
	int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) :
					 WEXITSTATUS(status);
	int folder = open("/run/rig", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FILE *file = fopen("/run/rig/status", "w");
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	if (!file ||
	    fprintf(file, "%d %lld%09ld\n", code, (long long)now.tv_sec,
		    now.tv_nsec) < 0 ||
	    fclose(file))
		die("cannot write the status");
	/* What the script left goes to the host; disks may be broken by now. */
	if (folder < 0 || syncfs(folder) < 0)
		die("cannot bring the results to the host");
}

int main(int argc, char **argv)
{
	struct stream streams[2] = { { .tty = "/dev/tty1" },
				     { .tty = "/dev/tty2" } };
	const char *terminal = NULL;
	struct sigaction action = { .sa_handler = nothing };
	sigset_t child;
	pid_t script;
	int status;

	if (argc == 2 && !strcmp(argv[1], "shell"))
		terminal = "/dev/tty1";
	sethostname("rig", 3);
	loopback_up();
	go_first();
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, NULL);
	sigaction(SIGCHLD, &action, NULL);
	if (!terminal) {
		open_stream(&streams[0]);
		open_stream(&streams[1]);
	}
	script = fork();
	if (script < 0)
		die("cannot fork");
	if (!script)
		start(streams, terminal);
	if (!terminal) {
		close(streams[0].pipe[1]);
		close(streams[1].pipe[1]);
	}
	status = wait_for(script, streams);
	drain(&streams[0]);
	drain(&streams[1]);
	report(status);
	reboot(RB_POWER_OFF);
	die("cannot switch off");
}
