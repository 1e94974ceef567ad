import Type, { type Static } from "typebox";
import { invalidField } from "../../base/errors.ts";
import { pointer } from "../../base/schema.ts";
import { CONNECTOR_NAME, CONNECTOR_NAME_LENGTH } from "../connector.ts";
import { checkSecrets } from "../secrets/secrets-of.ts";
import type { ConnectorDefinition, McpDefinition, OpenApiAuth, OpenApiDefinition } from "./definition.ts";

const closed = { additionalProperties: false } as const;
const Url = Type.String({ minLength: 1, maxLength: 4_096 });
const Secret = Type.String({ maxLength: 16_384 });

const Transport = Type.Object(
  {
    type: Type.Enum(["stdio", "http", "sse"]),
    command: Type.Optional(Type.String({ minLength: 1, maxLength: 4_096, pattern: "^[^\\x00]+$" })),
    args: Type.Optional(
      Type.Array(Type.String({ maxLength: 16_384, pattern: "^[^\\x00]*$" }), { maxItems: 200 }),
    ),
    env: Type.Optional(
      Type.Record(
        Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}$" }),
        Type.String({ maxLength: 16_384, pattern: "^[^\\x00]*$" }),
        { maxProperties: 200, ...closed },
      ),
    ),
    url: Type.Optional(Url),
    headers: Type.Optional(
      Type.Record(
        // RFC 9110, section 5.6.2. A name that HTTP cannot carry would be refused later, in an error that quotes it.
        Type.String({ pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$" }),
        Type.String({ maxLength: 16_384, pattern: "^[\\t -~]*$" }),
        { maxProperties: 100, ...closed },
      ),
    ),
  },
  closed,
);

const Auth = Type.Object(
  {
    type: Type.Enum(["bearer", "basic", "header", "query"]),
    token: Type.Optional(Secret),
    username: Type.Optional(Secret),
    password: Type.Optional(Secret),
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    value: Type.Optional(Secret),
  },
  closed,
);

/** The request that creates a connector (contract, section 6). */
export const ConnectorCreate = Type.Object(
  {
    name: Type.String({ pattern: CONNECTOR_NAME, maxLength: CONNECTOR_NAME_LENGTH }),
    kind: Type.Enum(["mcp", "openapi"]),
    scopes: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 200, pattern: "^[A-Za-z0-9_.*?-]+$" }), {
        minItems: 1,
        maxItems: 100,
        description:
          "Globs over its own tools' names (`*` matches any characters, `?` matches one). Default: all tools.",
      }),
    ),
    transport: Type.Optional(Transport),
    spec: Type.Optional(
      Type.Union([
        Type.String({ minLength: 1, description: "A URL, or the document's text." }),
        Type.Record(Type.String(), Type.Unknown(), { description: "The document." }),
      ]),
    ),
    base_url: Type.Optional(Url),
    auth: Type.Optional(Auth),
  },
  closed,
);

export type ConnectorRequest = Static<typeof ConnectorCreate>;

/** Fields of a transport or an auth, by its type: required ones, and optional ones. */
const TRANSPORT_FIELDS = {
  stdio: { needs: ["command"], may: ["args", "env"] },
  http: { needs: ["url"], may: ["headers"] },
  sse: { needs: ["url"], may: ["headers"] },
} as const;
const AUTH_FIELDS = {
  bearer: { needs: ["token"], may: [] },
  basic: { needs: ["username", "password"], may: [] },
  header: { needs: ["name", "value"], may: [] },
  query: { needs: ["name", "value"], may: [] },
} as const;

/** The definition that a request describes. @throws Problem 422 for fields that do not go together, too many secrets */
export function definitionOf(request: ConnectorRequest): ConnectorDefinition {
  const definition = request.kind === "mcp" ? mcpOf(request) : openApiOf(request);
  checkSecrets(definition);
  return definition;
}

function mcpOf(request: ConnectorRequest): McpDefinition {
  refuseFields(request, ["spec", "base_url", "auth"], "is only valid for kind openapi");
  const { transport } = request;
  if (!transport) throw invalidField("/transport", "is required for kind mcp");
  checkFields("/transport", transport, TRANSPORT_FIELDS[transport.type]);
  refuseRepeated(transport.headers ?? {});
  const { type, command = "", args = [], env = {}, url = "", headers = {} } = transport;
  return {
    kind: "mcp",
    transport: type === "stdio" ? { type, command, args, env } : { type, url, headers },
  };
}

function openApiOf(request: ConnectorRequest): OpenApiDefinition {
  refuseFields(request, ["transport"], "is only valid for kind mcp");
  const { spec } = request;
  if (spec === undefined) throw invalidField("/spec", "is required for kind openapi");
  return {
    kind: "openapi",
    spec: typeof spec === "string" ? spec.trim() : JSON.stringify(spec),
    baseUrl: request.base_url ?? null,
    auth: request.auth ? authOf(request.auth) : null,
  };
}

function authOf(auth: Static<typeof Auth>): OpenApiAuth {
  checkFields("/auth", auth, AUTH_FIELDS[auth.type]);
  const { type, token = "", username = "", password = "", name = "", value = "" } = auth;
  for (const [field, text] of Object.entries({ token, username, password, value })) {
    if (!/^[\t -~]*$/.test(text) && type !== "query" && type !== "basic") {
      throw invalidField(`/auth/${field}`, "must be printable ASCII, because it is sent in a header");
    }
  }
  if (type === "bearer") return { type, token };
  if (type === "basic") return { type, username, password };
  if (type === "header" && !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    throw invalidField("/auth/name", "is not a valid header name");
  }
  return { type, name, value };
}

function checkFields(
  path: string,
  given: Readonly<Record<string, unknown>> & { readonly type: string },
  { needs, may }: { readonly needs: readonly string[]; readonly may: readonly string[] },
): void {
  for (const field of needs) {
    if (given[field] === undefined) throw invalidField(`${path}/${field}`, `is required for ${given.type}`);
  }
  for (const field of Object.keys(given)) {
    if (field !== "type" && !needs.includes(field) && !may.includes(field)) {
      throw invalidField(`${path}/${field}`, `is not valid for ${given.type}`);
    }
  }
}

/** HTTP does not distinguish upper and lower case in header names: the values would be joined. */
function refuseRepeated(headers: Readonly<Record<string, string>>): void {
  const names = new Set<string>();
  for (const name of Object.keys(headers)) {
    if (names.has(name.toLowerCase())) {
      throw invalidField(pointer("/transport/headers", name), "repeats a header in other letter case");
    }
    names.add(name.toLowerCase());
  }
}

function refuseFields(
  request: ConnectorRequest,
  fields: readonly (keyof ConnectorRequest)[],
  message: string,
): void {
  for (const field of fields) if (request[field] !== undefined) throw invalidField(`/${field}`, message);
}
