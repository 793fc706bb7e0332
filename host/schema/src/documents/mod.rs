//! The schema documents of TrainJob and both runtimes, and the CRDs that are made of them.
