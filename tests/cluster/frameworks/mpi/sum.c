/* Sums the ranks of a group of MPI. Options: --fail-rank RANK, --hold-until FILE, --checkpoint FILE, as of the programs in Python. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int allreduce(int number) {
  int summed;
  MPI_Allreduce(&number, &summed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  return summed;
}

static void fail(int rank) {
  fprintf(stderr, "rank %d fails\n", rank);
  /* As MPI's default error handler does. */
  MPI_Abort(MPI_COMM_WORLD, 7);
}

static void save(const char *path, int step) {
  char scratch[256];
  snprintf(scratch, sizeof scratch, "%s.new", path);
  FILE *file = fopen(scratch, "w");
  if (!file || fprintf(file, "%d", step) < 0 || fclose(file) || rename(scratch, path)) {
    perror(path);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* Takes the steps that the checkpoint does not have, each with a sum over all ranks, and saves each. The steps are those of group.py. */
static void train(const char *path, int rank, int failing) {
  int start = 0, steps = 6, saved = 3;
  FILE *file = fopen(path, "r");
  if (file) {
    if (fscanf(file, "%d", &start) != 1) MPI_Abort(MPI_COMM_WORLD, 1);
    fclose(file);
  }
  for (int step = start; step < steps; step++) {
    allreduce(1);
    if (rank == 0) save(path, step + 1);
    /* No rank fails before the step is saved. */
    allreduce(1);
    if (rank == failing && start == 0 && step + 1 == saved) fail(rank);
    usleep(200000);
  }
  if (rank == 0) printf("trained from step %d to %d\n", start, steps);
}

int main(int argc, char **argv) {
  int rank, size, failing = -1;
  const char *file = NULL, *checkpoint = NULL;
  char host[256];
  MPI_Init(&argc, &argv);
  for (int at = 1; at + 1 < argc; at += 2) {
    if (!strcmp(argv[at], "--fail-rank")) failing = atoi(argv[at + 1]);
    if (!strcmp(argv[at], "--hold-until")) file = argv[at + 1];
    if (!strcmp(argv[at], "--checkpoint")) checkpoint = argv[at + 1];
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  gethostname(host, sizeof host);
  printf("rank %d of %d on %s sum %d\n", rank, size, host, allreduce(rank));
  fflush(stdout);
  if (checkpoint) {
    train(checkpoint, rank, failing);
  } else if (rank == failing) {
    fail(rank);
  } else if (failing >= 0 || file) {
    /* The ranks stop in the same round, because they agree on the sum. */
    while (allreduce(file && !access(file, F_OK)) == 0) usleep(200000);
  }
  /* Training takes longer than this. MPICH 4.0 with UCX can hang in MPI_Finalize if connections are still being made. */
  for (int round = 0; round < 40; round++) {
    usleep(50000);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
