import type { Static } from "typebox";
import type { NamedScope } from "../access/scopes.ts";
import type { ConnectorRequest } from "../connectors/definition/request.ts";
import type { FeedEvents } from "../feed/events.ts";
import type { Detail, EntryOutcome, Oversight, Phase } from "../ledger/entry.ts";
import type { TaskEvents as SentTaskEvents } from "../tasks/events/frames.ts";
import type { TaskStatus } from "../tasks/task.ts";
import type { viewTask } from "../tasks/view.ts";
import type { viewDocument, viewScope } from "../vault/view.ts";
import type { AgentChange, AgentCreate, viewAgent } from "./agent-body.ts";
import type { ConnectorView } from "./connector-view.ts";
import type { DecisionBody, OverrideBody, viewApproval } from "./routes/approvals.ts";
import type { ModelView } from "./routes/model-catalog.ts";
import type { viewTier } from "./routes/models.ts";
import type { viewPayloads } from "./routes/payload.ts";
import type { viewSession, viewSignedIn } from "./routes/sessions.ts";
import type { TokenCreate, TokenRotate, viewIssued, viewToken } from "./routes/tokens.ts";
import type { ToolCallRequest, viewAskedCall, viewToolAnswer } from "./routes/tools.ts";
import type { UsageQuery, viewUsage } from "./routes/usage.ts";
import type { DocumentBody, SearchBody, viewAnswer } from "./routes/vault.ts";
import type { viewDelivery, viewWebhook } from "./routes/webhooks.ts";
import type { viewName, viewWorkspace, WorkspaceChange } from "./routes/workspace.ts";
import type { TaskCreate } from "./task-body.ts";

/* The types of the REST API, derived from the schemas and views of its routes, for TypeScript clients such as the
   console. Types only, so a page imports no server code. */

export interface List<Item> {
  readonly data: readonly Item[];
  readonly next_cursor: string | null;
}

/** RFC 9457. */
export type { ProblemBody } from "./answer/answer.ts";

export type Agent = ReturnType<typeof viewAgent>;
export type Task = ReturnType<typeof viewTask>;
/** The events of a task by name, with their data. */
export type TaskEvents = Omit<SentTaskEvents, "task.finished"> & { readonly "task.finished": Task };
/** A call that waits or waited for people to approve it, with their decisions. */
export type Approval = ReturnType<typeof viewApproval>;
export type { FeedEvents, NamedScope, TaskStatus };
export type FeedEventName = keyof FeedEvents;
export type UsageReport = ReturnType<typeof viewUsage>;
export type SignedInBrowser = ReturnType<typeof viewSession>;
export type Webhook = ReturnType<typeof viewWebhook>;
export type Delivery = ReturnType<typeof viewDelivery>;
export type Token = ReturnType<typeof viewToken>;
export type IssuedToken = ReturnType<typeof viewIssued>;
export type Workspace = ReturnType<typeof viewWorkspace>;
export type WorkspaceState = ReturnType<typeof viewName>;
export type Connector = ConnectorView;
export type Tool = Connector["tools"][number];
export type { ModelView };
export type Tier = ReturnType<typeof viewTier>;
export type VaultDocument = ReturnType<typeof viewDocument>;
export type SearchAnswer = ReturnType<typeof viewAnswer>;
/** A passage found by a search. */
export type FoundPassage = SearchAnswer["results"][number];
export type VaultScope = ReturnType<typeof viewScope>;

export type CurrentSession = ReturnType<typeof viewSignedIn>;

/** A ledger entry. Fields missing from its stored bytes are null. */
export interface LedgerEntry {
  readonly seq: number;
  readonly prev: string;
  readonly leaf: string;
  readonly ts: string;
  readonly phase: Phase;
  readonly ref: number | null;
  readonly action: string;
  readonly outcome: EntryOutcome;
  readonly code: string | null;
  readonly channel: string;
  readonly request_id: string | null;
  readonly actor: string;
  readonly agent: string | null;
  readonly tier: number | null;
  readonly model: string | null;
  readonly task: string | null;
  readonly tool: string | null;
  readonly input_hash: string | null;
  readonly output_hash: string | null;
  readonly credits: number | null;
  readonly oversight: Oversight | null;
  readonly detail: Detail | null;
}

/** Query parameters of every list. */
export interface PageQuery {
  readonly limit?: number;
  readonly cursor?: string;
}

export interface LedgerQuery extends PageQuery {
  readonly agent?: string;
  readonly actor?: string;
  readonly action?: string;
  readonly task?: string;
  readonly outside_tasks?: boolean;
  readonly tier?: number;
  readonly date?: string;
  readonly from?: string;
  readonly to?: string;
  readonly order?: "asc" | "desc";
}

/** What each route accepts and returns, by method and path. An undefined answer has no body (204). */
export interface Api {
  "POST /v1/session": { answer: CurrentSession };
  "GET /v1/session": { answer: CurrentSession };
  "DELETE /v1/session": { answer: undefined };
  "GET /v1/sessions": { query: PageQuery; answer: List<SignedInBrowser> };
  "DELETE /v1/sessions/:id": { answer: undefined };

  "GET /v1/agents": { query: PageQuery; answer: List<Agent> };
  "POST /v1/agents": { body: Static<typeof AgentCreate>; answer: Agent };
  "GET /v1/agents/:name": { answer: Agent };
  "PATCH /v1/agents/:name": { body: Static<typeof AgentChange>; answer: Agent };
  "DELETE /v1/agents/:name": { answer: undefined };
  "POST /v1/agents/:name/stop": { answer: Agent };
  "POST /v1/agents/:name/resume": { answer: Agent };

  "POST /v1/tasks": { body: Static<typeof TaskCreate>; answer: { id: string; status: TaskStatus } };
  "GET /v1/tasks": { query: PageQuery & { agent?: string; status?: TaskStatus }; answer: List<Task> };
  "GET /v1/tasks/:id": { answer: Task };
  "POST /v1/tasks/:id/cancel": { answer: Task };
  "POST /v1/tasks/:id/override": { body: Static<typeof OverrideBody>; answer: Task };

  "GET /v1/approvals": {
    query: PageQuery & {
      status?: Approval["status"] | "decided" | "all";
      agent?: string;
      tool?: string;
      task?: string;
    };
    answer: List<Approval>;
  };

  "POST /v1/tasks/:id/approvals/:call_id": {
    body: Static<typeof DecisionBody>;
    answer: {
      task: string;
      call_id: string;
      decision: "approve" | "deny";
      /** `pending` if another person must also approve. */
      status: "pending" | "approved" | "denied";
    };
  };

  "POST /v1/vault/search": { body: Static<typeof SearchBody>; answer: SearchAnswer };
  "POST /v1/vault/documents": { body: Static<typeof DocumentBody>; answer: VaultDocument };
  "GET /v1/vault/documents": {
    query: PageQuery & { scope?: string; source_uri?: string };
    answer: List<VaultDocument>;
  };
  "GET /v1/vault/scopes": { query: PageQuery & { agent?: string }; answer: List<VaultScope> };
  "GET /v1/vault/documents/:id": { answer: VaultDocument & { readonly text: string } };
  "DELETE /v1/vault/documents/:id": { query: { payloads?: boolean }; answer: undefined };

  "GET /v1/connectors": { query: PageQuery; answer: List<Connector> };
  "POST /v1/connectors": { body: ConnectorRequest; answer: Connector };
  "DELETE /v1/connectors/:name": { answer: undefined };
  "POST /v1/connectors/:name/refresh": { answer: Connector };
  /** 202 with a task if a person must approve the call first. */
  "POST /v1/tools/:name/call": {
    body: Static<typeof ToolCallRequest>;
    answer: ReturnType<typeof viewToolAnswer> | ReturnType<typeof viewAskedCall>;
  };

  "GET /v1/ledger": { query: LedgerQuery; answer: List<LedgerEntry> };
  "GET /v1/ledger/:seq": { answer: LedgerEntry & { readonly bytes: string } };
  "GET /v1/ledger/:seq/proof": {
    answer: { seq: number; leaf: string; size: number; inclusion: string[]; checkpoint: string };
  };
  "GET /v1/ledger/key": { answer: { vkey: string; former_vkeys?: string[] } };
  "GET /v1/ledger/consistency": {
    query: { from: number; to?: number };
    answer: { from: number; to: number; consistency: string[]; checkpoint: string };
  };
  "GET /v1/ledger/:seq/payload": { answer: ReturnType<typeof viewPayloads> };
  "DELETE /v1/ledger/:seq/payload": { answer: undefined };

  "GET /v1/usage": { query: Partial<Static<typeof UsageQuery>>; answer: UsageReport };

  "GET /v1/models": { query: PageQuery; answer: List<ModelView> };
  "GET /v1/models/:id": { answer: ModelView };
  "GET /v1/tiers": { query: PageQuery; answer: List<Tier> };

  "GET /v1/tokens": { query: PageQuery; answer: List<Token> };
  "POST /v1/tokens": { body: Static<typeof TokenCreate>; answer: IssuedToken };
  "DELETE /v1/tokens/:id": { answer: undefined };
  "POST /v1/tokens/:id/rotate": { body: Static<typeof TokenRotate>; answer: IssuedToken };

  "GET /v1/workspace": { answer: Workspace };
  "PATCH /v1/workspace": { body: Static<typeof WorkspaceChange>; answer: Workspace };
  "POST /v1/workspace/stop": { answer: WorkspaceState };
  "POST /v1/workspace/resume": { answer: WorkspaceState };

  "GET /v1/webhooks": { answer: Webhook };
  "GET /v1/webhooks/deliveries": { query: PageQuery; answer: List<Delivery> };
  "POST /v1/webhooks/deliveries/:id/redeliver": { answer: Delivery };

  "GET /openapi.json": { answer: { readonly info: { readonly version: string } } };
}
