export { runAgent } from "./agent.ts";
export { AgentDenied, type AgentFailureCode, AnswerTooLarge, ToolError } from "./errors.ts";
export type {
  AgentEvent,
  AgentFailed,
  AgentFinished,
  FinishReason,
  ModelFallback,
  ModelStarted,
  OutputDelta,
  OutputReset,
  StepFinished,
  StepStarted,
  ToolCallEvent,
  ToolResultEvent,
} from "./events.ts";
export { extractiveModel } from "./extractive.ts";
export { isRetryable } from "./failure.ts";
export type {
  AfterModelCall,
  AfterToolCall,
  BeforeModelCall,
  BeforeToolCall,
  Deny,
  Hooks,
  Policy,
} from "./hooks.ts";
export { type InMemoryOptions, inMemory, type Memory } from "./memory.ts";
export type {
  AssistantMessage,
  JsonObject,
  JsonValue,
  Message,
  ToolCall,
  ToolMessage,
  ToolResult,
  ToolStatus,
  UserMessage,
} from "./message.ts";
export type { LanguageModel, ModelOption, NamedModel } from "./model.ts";
export type { AgentOptions } from "./options.ts";
export { isJsonObject } from "./prompt.ts";
export {
  defineTool,
  type JsonSchema,
  type SchemaToolDefinition,
  type Tool,
  type ToolContext,
  type ToolFlags,
  type TypedToolDefinition,
} from "./tool.ts";
export type { Usage } from "./usage.ts";
