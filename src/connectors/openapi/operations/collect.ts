import { DocumentFault, quote } from "../fault.ts";
import { isMap, type JsonMap, own, ownList, ownMap, ownText } from "../json.ts";
import type { References } from "../references.ts";
import { type ApiOperation, methodsOf, titleOf } from "./operation.ts";

/**
 * Maximum number of operations of one document; GitHub's has 1,100. With more, a model cannot choose among the tools
 * and people cannot read the list.
 */
const MAX_OPERATIONS = 2_000;
/** Maximum number of parameters of one operation, including those of its path. */
const MAX_PARAMETERS = 200;

/** An operation, or the reason why it cannot be offered. */
export type CollectedOperation = { readonly title: string } & (
  | { readonly operation: ApiOperation }
  | { readonly fault: DocumentFault }
);

/**
 * The operations of a document, in its order.
 * @throws DocumentFault if there are none, or too many
 */
export function collectOperations(root: JsonMap, references: References): CollectedOperation[] {
  const found = pathsOf(root, references).flatMap(({ path, item }) =>
    methodsOf(item).map((method) => ({ path, item, method })),
  );
  if (found.length === 0) throw new DocumentFault("it has no operations");
  return found.map(({ path, item, method }) => {
    const title = titleOf({ method: method.toUpperCase(), path });
    try {
      return { title, operation: operationOf(path, item, method, references) };
    } catch (fault) {
      if (!(fault instanceof DocumentFault)) throw fault;
      return { title, fault };
    }
  });
}

interface Path {
  readonly path: string;
  readonly item: JsonMap;
}

/** Paths with their items. Counted while they are read, since a document may have a million of them. */
function pathsOf(root: JsonMap, references: References): Path[] {
  const paths: Path[] = [];
  let operations = 0;
  for (const [path, value] of Object.entries(ownMap(root, "paths") ?? {})) {
    if (!path.startsWith("/")) continue;
    const item = references.follow(value);
    if (!item) continue;
    operations += methodsOf(item).length;
    if (operations > MAX_OPERATIONS) {
      throw new DocumentFault(
        `it has more than ${MAX_OPERATIONS} operations: create connectors for parts of it, with fewer operations each`,
      );
    }
    paths.push({ path, item });
  }
  return paths;
}

function operationOf(path: string, item: JsonMap, method: string, references: References): ApiOperation {
  const fields = own(item, method);
  if (!isMap(fields)) throw new DocumentFault("it is not an object");
  if (method === "trace") throw new DocumentFault("TRACE is never sent");
  const declared = [...ownList(item, "parameters"), ...ownList(fields, "parameters")];
  if (declared.length > MAX_PARAMETERS)
    throw new DocumentFault(`it has more than ${MAX_PARAMETERS} parameters`);
  // A map keeps the position of the first entry and the value of the last: the operation's own parameters win.
  const parameters = new Map<string, JsonMap>();
  for (const value of declared) {
    const parameter = references.follow(value);
    const name = parameter && ownText(parameter, "name");
    const place = parameter && ownText(parameter, "in");
    if (!parameter || name === undefined || place === undefined) {
      throw new DocumentFault("one of its parameters has no name or no location (`in`)");
    }
    if (name === "__proto__") throw new DocumentFault(`it has a parameter named ${quote(name)}`);
    // RFC 9110: header names are case-insensitive.
    parameters.set(`${place} ${place === "header" ? name.toLowerCase() : name}`, parameter);
  }
  return {
    method: method.toUpperCase(),
    path,
    fields,
    parameters: [...parameters.values()],
    servers: own(fields, "servers") ?? own(item, "servers"),
  };
}
