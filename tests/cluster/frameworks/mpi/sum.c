/* Sums the ranks of a group of MPI. Options: --fail-rank RANK, --hold-until FILE, as of the programs in Python. */
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

int main(int argc, char **argv) {
  int rank, size, failing = -1;
  const char *file = NULL;
  char host[256];
  MPI_Init(&argc, &argv);
  for (int at = 1; at + 1 < argc; at += 2) {
    if (!strcmp(argv[at], "--fail-rank")) failing = atoi(argv[at + 1]);
    if (!strcmp(argv[at], "--hold-until")) file = argv[at + 1];
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  gethostname(host, sizeof host);
  printf("rank %d of %d on %s sum %d\n", rank, size, host, allreduce(rank));
  fflush(stdout);
  if (rank == failing) {
    fprintf(stderr, "rank %d fails\n", rank);
    /* As MPI's default error handler does. */
    MPI_Abort(MPI_COMM_WORLD, 7);
  }
  if (failing >= 0 || file) {
    /* The ranks stop in the same round, because they agree on the sum. */
    while (allreduce(file && !access(file, F_OK)) == 0) usleep(200000);
  }
  /* Training takes longer than this. MPICH 4.0 with UCX can hang in MPI_Finalize if connections are still being made. */
  for (int round = 0; round < 10; round++) {
    usleep(50000);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
  return 0;
}
