//! Fair shares for namespaces. They take turns, so that one with thousands of TrainJobs delays the others by one turn each, and each may
//! have a share, so that its slow ones leave room.
//!
//! Everything that TrainJobs compete for is a [`FairSemaphore`]: workers, threads, memory, and lists of Events and Jobs. A reconcile that
//! waits for one of them holds only memory, which is acquired in a fixed order, so there is no deadlock.

mod memory;
mod round_robin;
mod semaphore;
mod worker;

pub(crate) use memory::MemoryBudget;
pub(crate) use round_robin::RoundRobin;
pub(crate) use semaphore::{FairSemaphore, Permit};
pub(crate) use worker::Worker;
