import type { Mask } from "../../../base/masking/mask.ts";
import type { ToolAnnotations, ToolDescription } from "../../source.ts";
import type { OperationBinding } from "../binding.ts";
import { firstOf } from "../first-of.ts";
import { own, ownText } from "../json.ts";
import { checkPath } from "../path.ts";
import type { References } from "../references.ts";
import type { SchemaWork } from "../schema/budget.ts";
import { inputSchema } from "../schema/input.ts";
import { ArgumentNames } from "./arguments.ts";
import { BODY_ARGUMENT, takeBody } from "./body.ts";
import type { OperationNames } from "./names.ts";
import { type ApiOperation, isSafe, titleOf } from "./operation.ts";
import { type ReservedName, takeParameters } from "./parameters.ts";
import { firstServer } from "./servers.ts";

const DESCRIPTION_LIMIT = 4_000;
const TITLE_LIMIT = 200;

/** Shared by all operations of a document. */
export interface OperationToolParts {
  readonly references: References;
  readonly work: SchemaWork;
  readonly names: OperationNames;
  /** The document's own server; null if `base_url` replaces all servers. */
  readonly server: string | null;
  readonly documentUrl: string | null;
  readonly reserved: ReservedName | null;
  /** Masks the connector's secrets. */
  readonly mask: Mask;
}

/**
 * Converts an operation to a tool.
 * @throws DocumentFault if it cannot be called, with the reason
 */
export function toolOf(operation: ApiOperation, parts: OperationToolParts): ToolDescription {
  checkPath(operation.path);
  const body = takeBody(operation, parts.references);
  const names = new ArgumentNames(body ? [BODY_ARGUMENT] : []);
  const parameters = takeParameters(operation, names, parts.reserved);
  const argumentList = [...parameters.map(({ argument }) => argument), ...(body ? [body.argument] : [])];
  const itsServer = parts.server === null ? undefined : firstServer(operation.servers, parts.documentUrl);
  const binding: OperationBinding = {
    method: operation.method,
    path: operation.path,
    server: itsServer ?? parts.server,
    parameters: parameters.map(({ binding }) => binding),
    body: body?.binding ?? null,
  };
  const schema = inputSchema(argumentList, parts.references, parts.work, parts.mask);
  const summary = ownText(operation.fields, "summary");
  const operationId = ownText(operation.fields, "operationId");
  const called = summary ?? operationId;
  const title = called === undefined ? undefined : firstOf(called, TITLE_LIMIT, parts.mask);
  return {
    // Last, so that an omitted operation does not use up a name.
    name: parts.names.take(operationId, operation.method, operation.path),
    ...(title === undefined ? {} : { title }),
    description: firstOf(descriptionOf(operation, summary), DESCRIPTION_LIMIT, parts.mask),
    inputSchema: schema,
    annotations: annotationsOf(operation.method, title),
    destructive: !isSafe(operation.method),
    binding: { ...binding },
  };
}

function descriptionOf(operation: ApiOperation, summary: string | undefined): string {
  const description = ownText(operation.fields, "description");
  const said = [summary, description === summary ? undefined : description].filter(
    (each) => each !== undefined,
  );
  const texts = said.length === 0 ? [titleOf(operation)] : said;
  if (own(operation.fields, "deprecated") === true) texts.unshift("Deprecated.");
  return texts.join("\n\n");
}

/**
 * The properties that HTTP defines for the method (RFC 9110, 9.2). Nothing else about the operation's effects can be
 * known.
 */
function annotationsOf(method: string, title: string | undefined): ToolAnnotations {
  return {
    ...(title === undefined ? {} : { title }),
    readOnlyHint: isSafe(method),
    destructiveHint: !isSafe(method),
    idempotentHint: isSafe(method) || method === "PUT" || method === "DELETE",
    openWorldHint: true,
  };
}
