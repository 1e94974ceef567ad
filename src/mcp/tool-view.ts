import type { CatalogueTool } from "../connectors/catalogue.ts";
import type { ToolAnnotations } from "../connectors/source.ts";

/** A tool as `tools/list` shows it (specification 2025-11-25). */
export interface ToolView {
  readonly name: string;
  /** The dotted name, as REST has it. */
  readonly title: string;
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  readonly annotations?: ToolAnnotations;
}

export function viewTool(shown: string, { name, offered }: CatalogueTool): ToolView {
  const { description, inputSchema, outputSchema, annotations } = offered;
  return {
    name: shown,
    title: name,
    description,
    inputSchema,
    ...(outputSchema ? { outputSchema } : {}),
    ...(annotations ? { annotations } : {}),
  };
}
