import type { Migration } from "../migrate.ts";

export const TASKS: Migration = {
  name: "tasks, their calls, answers and events, approvals, schedules",
  sql: `
CREATE TABLE tasks (
  workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
  id TEXT COLLATE "C" NOT NULL,
  agent_id BIGINT NOT NULL REFERENCES agents (id),
  agent TEXT COLLATE "C" NOT NULL,
  tier BIGINT NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  attempts BIGINT NOT NULL,
  model TEXT COLLATE "C",
  credits BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  steps BIGINT NOT NULL,
  error_code TEXT COLLATE "C",
  dispatch_seq BIGINT NOT NULL,
  finish_seq BIGINT,
  open_model_call BIGINT,
  open_reserved BIGINT NOT NULL DEFAULT 0,
  event_ceiling BIGINT NOT NULL,
  created_by TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  finished_at BIGINT,
  input_form TEXT COLLATE "C",
  continues TEXT COLLATE "C",
  seal BYTEA,
  error_message TEXT COLLATE "C",
  tools TEXT COLLATE "C" NOT NULL,
  metadata TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (workspace_id, id)
);
CREATE INDEX tasks_by_agent ON tasks (workspace_id, agent_id, id);
CREATE INDEX tasks_open ON tasks (workspace_id, id, status, agent_id, finished_at) WHERE finished_at IS NULL;
CREATE INDEX tasks_ended ON tasks (workspace_id, status, id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_ended_by_agent ON tasks (workspace_id, agent_id, status, id, finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_continuing ON tasks (workspace_id, continues, id) WHERE continues IS NOT NULL;

CREATE TABLE tool_calls (
  workspace_id BIGINT NOT NULL,
  task_id TEXT COLLATE "C" NOT NULL,
  position BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  tool TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  intent_seq BIGINT NOT NULL,
  started_at BIGINT NOT NULL,
  duration_ms BIGINT,
  outcome_seq BIGINT,
  price BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (workspace_id, task_id, position),
  FOREIGN KEY (workspace_id, task_id) REFERENCES tasks (workspace_id, id)
);

CREATE TABLE task_answers (
  workspace_id BIGINT NOT NULL,
  task_id TEXT COLLATE "C" NOT NULL,
  step BIGINT NOT NULL,
  seal BYTEA,
  body TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (workspace_id, task_id, step),
  FOREIGN KEY (workspace_id, task_id) REFERENCES tasks (workspace_id, id)
);

CREATE TABLE task_events (
  workspace_id BIGINT NOT NULL,
  task_id TEXT COLLATE "C" NOT NULL,
  first_id BIGINT NOT NULL,
  last_id BIGINT NOT NULL,
  frames BYTEA NOT NULL,
  PRIMARY KEY (workspace_id, task_id, first_id),
  FOREIGN KEY (workspace_id, task_id) REFERENCES tasks (workspace_id, id)
);

CREATE TABLE approvals (
  workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
  task_id TEXT COLLATE "C" NOT NULL,
  call_id TEXT COLLATE "C" NOT NULL,
  agent TEXT COLLATE "C" NOT NULL,
  tool TEXT COLLATE "C" NOT NULL,
  pending_seq BIGINT NOT NULL,
  arguments_seq BIGINT NOT NULL,
  arguments_hash TEXT COLLATE "C" NOT NULL,
  required BIGINT NOT NULL,
  presented_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  decision_seq BIGINT,
  definition_hash TEXT COLLATE "C",
  first_seq BIGINT,
  PRIMARY KEY (workspace_id, task_id, call_id)
);
CREATE INDEX approvals_pending ON approvals (workspace_id, pending_seq, task_id, call_id) WHERE status = 'pending';
CREATE INDEX approvals_expiring ON approvals (expires_at) WHERE status = 'pending';
CREATE INDEX approvals_by_status ON approvals (workspace_id, status, pending_seq);
CREATE INDEX approvals_by_agent ON approvals (workspace_id, agent, status, pending_seq);
CREATE INDEX approvals_by_tool ON approvals (workspace_id, tool, status, pending_seq);
CREATE INDEX approvals_by_question ON approvals (workspace_id, agent, tool, status, pending_seq);

CREATE TABLE approval_votes (
  workspace_id BIGINT NOT NULL,
  task_id TEXT COLLATE "C" NOT NULL,
  call_id TEXT COLLATE "C" NOT NULL,
  person TEXT COLLATE "C" NOT NULL,
  seq BIGINT NOT NULL,
  PRIMARY KEY (workspace_id, task_id, call_id, person)
);

CREATE TABLE schedules (
  workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
  id TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  agent TEXT COLLATE "C" NOT NULL,
  agent_id BIGINT,
  cron TEXT COLLATE "C" NOT NULL,
  timezone TEXT COLLATE "C" NOT NULL,
  tier BIGINT,
  missed TEXT COLLATE "C" NOT NULL,
  status TEXT COLLATE "C" NOT NULL,
  version BIGINT NOT NULL,
  created_by TEXT COLLATE "C" NOT NULL,
  runs_as TEXT COLLATE "C" NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  next_at BIGINT,
  last_at BIGINT,
  last_task TEXT COLLATE "C",
  last_code TEXT COLLATE "C",
  seal BYTEA,
  tools TEXT COLLATE "C" NOT NULL,
  metadata TEXT COLLATE "C" NOT NULL,
  prompt TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (workspace_id, id)
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
`,
};
