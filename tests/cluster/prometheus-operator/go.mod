// The CRDs of the Prometheus operator, by which tests/cluster checks the ServiceMonitor and the PrometheusRule of charts/trainyard.
// No package is imported, so `go mod tidy` would remove the line.
module trainyard.dev/tests/cluster/prometheus-operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.92.0
