//! A structural schema of Kubernetes, applied to an object as an API server applies it.
