import type { CatalogueTool } from "../connectors/catalogue.ts";
import type { ToolAnnotations } from "../connectors/source.ts";
import type { KeptTool } from "../connectors/tools/kept-tool.ts";

type Schema = Readonly<Record<string, unknown>>;

/**
 * A tool as listed by `tools/list` (specification 2025-11-25). Its schemas are JSON text and are never parsed here.
 */
export interface ToolView {
  readonly name: string;
  /** The dotted name, as in REST. */
  readonly title: string;
  readonly description: string;
  readonly inputSchemaJson: string;
  readonly outputSchemaJson?: string;
  readonly annotations?: ToolAnnotations;
}

/** One of this server's own tools, whose schemas are values. */
export interface OwnTool extends Pick<ToolView, "name" | "title" | "description" | "annotations"> {
  readonly inputSchema: Schema;
  readonly outputSchema?: Schema;
}

export function viewOwnTool({ inputSchema, outputSchema, ...told }: OwnTool): ToolView {
  return {
    ...told,
    inputSchemaJson: JSON.stringify(inputSchema),
    ...(outputSchema ? { outputSchemaJson: JSON.stringify(outputSchema) } : {}),
  };
}

export function viewTool(
  shown: string,
  { name, offered }: Pick<CatalogueTool, "name"> & { readonly offered: KeptTool },
): ToolView {
  const { description, inputSchemaJson, outputSchemaJson, annotations } = offered;
  return {
    name: shown,
    title: name,
    description,
    inputSchemaJson,
    ...(outputSchemaJson === undefined ? {} : { outputSchemaJson }),
    ...(annotations ? { annotations } : {}),
  };
}

/** Approximate number of characters of the tool in a list. */
export function lengthOfView({
  name,
  title,
  description,
  inputSchemaJson,
  outputSchemaJson = "",
}: ToolView): number {
  return (
    200 + name.length + title.length + description.length + inputSchemaJson.length + outputSchemaJson.length
  );
}

/** The tool as JSON for a list. */
export function toolJson({ inputSchemaJson, outputSchemaJson, ...told }: ToolView, meta?: object): string {
  const head = JSON.stringify(meta ? { ...told, _meta: meta } : told).slice(0, -1);
  const output = outputSchemaJson === undefined ? "" : `,"outputSchema":${outputSchemaJson}`;
  return `${head},"inputSchema":${inputSchemaJson}${output}}`;
}
