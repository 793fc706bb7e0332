//! The plugins that PolicyPlugins of the cluster declare.

mod rollout;
