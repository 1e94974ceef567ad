import Type, { type Static } from "typebox";
import { validator } from "../../base/schema.ts";

const Style = Type.Enum([
  "simple",
  "label",
  "matrix",
  "form",
  "spaceDelimited",
  "pipeDelimited",
  "deepObject",
]);

/** How a value is written (OpenAPI 3.1.1, 4.8.12.2 and 4.8.15). */
const Writing = Type.Object({
  style: Style,
  explode: Type.Boolean(),
  /** Of the query: `: / ? @ ! $ ' ( ) * , ;` are left as they are. */
  allowReserved: Type.Optional(Type.Boolean()),
  /** As JSON text instead, whatever the style says. */
  json: Type.Optional(Type.Boolean()),
});

const Parameter = Type.Object({
  /** The argument that it is taken from. */
  argument: Type.String(),
  name: Type.String(),
  in: Type.Enum(["path", "query", "header", "cookie"]),
  ...Writing.properties,
});

const Field = Type.Object({
  /** Its argument is base64 (in a list: each of it), and the bytes are sent. */
  binary: Type.Optional(Type.Boolean()),
  mediaType: Type.Optional(Type.String()),
  writing: Type.Optional(Writing),
});

const Body = Type.Object({
  kind: Type.Enum(["json", "form", "multipart", "text", "bytes"]),
  mediaType: Type.String(),
  /** Of a form: fields that are not sent as they are by default. */
  fields: Type.Record(Type.String(), Field),
});

const Binding = Type.Object({
  /** In capitals. */
  method: Type.String({ pattern: "^[A-Z]+$" }),
  /** Below the server, with `{name}` where a parameter goes. */
  path: Type.String({ pattern: "^/" }),
  /** The absolute URL of its server; null where the document names none and `base_url` stands for it. */
  server: Type.Union([Type.String(), Type.Null()]),
  parameters: Type.Array(Parameter),
  body: Type.Union([Body, Type.Null()]),
});

/** What a call of an operation needs, as it is stored with its tool: a start reads no document. */
export type OperationBinding = Static<typeof Binding>;
export type ParameterBinding = Static<typeof Parameter>;
export type BodyBinding = Static<typeof Body>;
export type FieldBinding = Static<typeof Field>;
export type WritingStyle = Static<typeof Writing>;

const compiled = validator(Binding);

/** The tool's `binding`, where it is one that this connector made. */
export function asOperationBinding(binding: unknown): OperationBinding | undefined {
  return compiled.is(binding) ? binding : undefined;
}
