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
export { extractiveModel } from "./extractive/model.ts";
export type {
  AfterModelCall,
  AfterToolCall,
  BeforeModelCall,
  BeforeToolCall,
  Deny,
  Hooks,
  RunPolicy,
} from "./hooks.ts";
export { type InMemoryOptions, inMemory, type Memory } from "./memory.ts";
export type {
  AssistantMessage,
  FilePart,
  JsonObject,
  JsonValue,
  Message,
  TextPart,
  ToolCall,
  ToolMessage,
  ToolResult,
  ToolStatus,
  UserMessage,
  UserPart,
} from "./message.ts";
export { isRetryable } from "./model/failure.ts";
export type { LanguageModel, ModelOption, NamedModel } from "./model/model.ts";
export { isJsonObject } from "./model/prompt.ts";
export type { TokenUsage } from "./model/usage.ts";
export type { AgentOptions } from "./options.ts";
export type { OutputOption } from "./output.ts";
export {
  defineTool,
  type JsonSchema,
  type SchemaToolDefinition,
  type Tool,
  type ToolContext,
  type ToolFlags,
  type TypedToolDefinition,
} from "./tools/tool.ts";
