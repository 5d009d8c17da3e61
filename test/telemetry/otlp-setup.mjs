/** The set-up of a traced process, as `node --import ./otlp-setup.mjs` has it: its spans go to where `OTEL_EXPORTER_OTLP_ENDPOINT` says. */

import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node'

new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] }).register()
