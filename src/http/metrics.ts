import { Counter, Gauge, Histogram, Registry } from "prom-client";

/** The program's metrics in Prometheus's text format. Labels have few values, so the number of series is small. */
export function createMetrics() {
  const registry = new Registry();
  const registers = [registry];
  const requests = new Counter({
    name: "gatehouse_http_requests_total",
    help: "Calls by status class",
    labelNames: ["status"],
    registers,
  });
  return {
    registry,
    /** One series each, looked up once because every call is counted. */
    answered: {
      "2xx": requests.labels("2xx"),
      "4xx": requests.labels("4xx"),
      "5xx": requests.labels("5xx"),
    },
    limitExceeded: new Counter({
      name: "gatehouse_limit_exceeded_total",
      help: "Requests and task starts over a workspace's limit, served or refused",
      labelNames: ["workspace", "limit"],
      registers,
    }),
    budgetsSpent: new Counter({
      name: "gatehouse_budgets_spent_total",
      help: "Budgets that reached 80 or 100 per cent",
      labelNames: ["workspace", "percent"],
      registers,
    }),
    reservations: new Gauge({
      name: "gatehouse_budget_reservations",
      help: "Calls in progress that have reserved credits of a budget",
      registers,
    }),
    modelCalls: new Counter({
      name: "gatehouse_model_calls_total",
      help: "Model calls by model and outcome",
      labelNames: ["model", "status"],
      registers,
    }),
    modelSeconds: new Histogram({
      name: "gatehouse_model_call_seconds",
      help: "Duration of model calls",
      labelNames: ["model"],
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120],
      registers,
    }),
    tokens: new Counter({
      name: "gatehouse_tokens_total",
      help: "Tokens by model and kind (input, output), reported or estimated",
      labelNames: ["model", "kind"],
      registers,
    }),
    clientCalls: new Counter({
      name: "gatehouse_client_model_calls_total",
      help: "Model calls of clients outside of tasks, by dialect and outcome; denied if nothing was sent",
      labelNames: ["dialect", "outcome"],
      registers,
    }),
    firstTokenSeconds: new Histogram({
      name: "gatehouse_first_token_seconds",
      help: "Time until the first part of an answer to a client's model call",
      labelNames: ["model"],
      buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
      registers,
    }),
    tokenCounts: new Counter({
      name: "gatehouse_token_counts_total",
      help: "Clients' requests to providers to count tokens, by outcome",
      labelNames: ["outcome"],
      registers,
    }),
    credits: new Counter({
      name: "gatehouse_credits_total",
      help: "Credits consumed by model",
      labelNames: ["model"],
      registers,
    }),
    toolCalls: new Counter({
      name: "gatehouse_tool_calls_total",
      help: "Tool calls by outcome",
      labelNames: ["status"],
      registers,
    }),
    tasksFinished: new Counter({
      name: "gatehouse_tasks_finished_total",
      help: "Tasks by final status",
      labelNames: ["status"],
      registers,
    }),
    taskSeconds: new Histogram({
      name: "gatehouse_task_seconds",
      help: "Time from a task's acceptance to its end",
      buckets: [0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600],
      registers,
    }),
    tasksRunning: new Gauge({ name: "gatehouse_tasks_running", help: "Tasks running now", registers }),
    tasksQueued: new Gauge({ name: "gatehouse_tasks_queued", help: "Tasks waiting now", registers }),
    connectorUp: new Gauge({
      name: "gatehouse_connector_up",
      help: "1 if the connector was reachable at the last attempt, else 0",
      labelNames: ["workspace", "connector"],
      registers,
    }),
    connectorCalls: new Counter({
      name: "gatehouse_connector_calls_total",
      help: "Calls to connectors' tools by outcome",
      labelNames: ["workspace", "connector", "outcome"],
      registers,
    }),
    connectorSeconds: new Histogram({
      name: "gatehouse_connector_call_seconds",
      help: "Duration of calls to connectors' tools",
      labelNames: ["workspace", "connector"],
      buckets: [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 60],
      registers,
    }),
    storeDisturbances: new Counter({
      name: "gatehouse_store_disturbances_total",
      help: "Foreign writes to the database, changes that they left in it, and database files that were moved, replaced or deleted",
      labelNames: ["kind"],
      registers,
    }),
    mcpSessions: new Gauge({ name: "gatehouse_mcp_sessions", help: "MCP sessions open now", registers }),
    connectionsClosed: new Counter({
      name: "gatehouse_connections_closed_total",
      help: "Connections without a call that were closed to make room",
      registers,
    }),
    callsWithoutRoom: new Counter({
      name: "gatehouse_calls_without_room_total",
      help: "Calls refused because the connection limit was reached",
      registers,
    }),
    connectionsLimit: new Gauge({
      name: "gatehouse_connections_limit",
      help: "Number of connections above which those without a call are closed",
      registers,
    }),
    openFiles: new Gauge({ name: "process_open_fds", help: "Open file descriptors", registers }),
    openFilesLimit: new Gauge({
      name: "process_max_fds",
      help: "Maximum number of open file descriptors",
      registers,
    }),
    residentBytes: new Gauge({
      name: "process_resident_memory_bytes",
      help: "Resident memory size in bytes",
      registers,
    }),
  };
}

export type Metrics = ReturnType<typeof createMetrics>;
