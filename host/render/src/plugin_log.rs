//! Writes what plugins log to the log of this program.

use trainyard_model::session::Session;

/// Writes the lines of all plugins, at their levels.
pub(crate) fn write(session: &Session, namespace: &str) {
    for logged in session.log() {
        let (plugin, phase, line) = (&logged.plugin, logged.phase, &logged.line.line);
        let job = &*session.job().name;
        macro_rules! emit {
            ($level:ident) => {
                tracing::$level!(target: "trainyard::plugin", %plugin, %phase, namespace, job, "{line}")
            };
        }
        match logged.line.level.as_str() {
            "error" => emit!(error),
            "warn" => emit!(warn),
            "info" => emit!(info),
            "debug" => emit!(debug),
            _ => emit!(trace),
        }
    }
}
