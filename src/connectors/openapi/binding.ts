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

/** How a value is serialised (OpenAPI 3.1.1, 4.8.12.2 and 4.8.15). */
const Writing = Type.Object({
  style: Style,
  explode: Type.Boolean(),
  /** For queries: leaves `: / ? @ ! $ ' ( ) * , ;` unencoded. */
  allowReserved: Type.Optional(Type.Boolean()),
  /** Writes JSON text instead, whatever the style. */
  json: Type.Optional(Type.Boolean()),
});

const Parameter = Type.Object({
  /** The argument that provides the value. */
  argument: Type.String(),
  name: Type.String(),
  in: Type.Enum(["path", "query", "header", "cookie"]),
  ...Writing.properties,
});

const Field = Type.Object({
  /** The argument is base64, or a list of base64 strings. The decoded bytes are sent. */
  binary: Type.Optional(Type.Boolean()),
  mediaType: Type.Optional(Type.String()),
  writing: Type.Optional(Writing),
});

const Body = Type.Object({
  kind: Type.Enum(["json", "form", "multipart", "text", "bytes"]),
  mediaType: Type.String(),
  /** For forms: fields that are not sent in the default way. */
  fields: Type.Record(Type.String(), Field),
});

const Binding = Type.Object({
  /** In upper case. */
  method: Type.String({ pattern: "^[A-Z]+$" }),
  /** Relative to the server, with `{name}` for each parameter. */
  path: Type.String({ pattern: "^/" }),
  /** The server's absolute URL; null if the document names none and `base_url` is used instead. */
  server: Type.Union([Type.String(), Type.Null()]),
  parameters: Type.Array(Parameter),
  body: Type.Union([Body, Type.Null()]),
});

/** What a call to an operation needs. Stored with its tool, so that startup does not read the document. */
export type OperationBinding = Static<typeof Binding>;
export type ParameterBinding = Static<typeof Parameter>;
export type BodyBinding = Static<typeof Body>;
export type FieldBinding = Static<typeof Field>;
export type WritingStyle = Static<typeof Writing>;

const compiled = validator(Binding);

/** The tool's `binding`, if an OpenAPI connector made it. */
export function asOperationBinding(binding: unknown): OperationBinding | undefined {
  return compiled.is(binding) ? binding : undefined;
}
