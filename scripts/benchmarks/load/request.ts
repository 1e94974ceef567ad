export interface RequestParts {
  readonly token?: string;
  readonly body?: object;
}

/** A request as it goes over the wire. The bare servers get the same headers, the token too, as they parse them as well. */
export function requestText(method: string, path: string, { token, body }: RequestParts = {}): string {
  const payload = body === undefined ? "" : JSON.stringify(body);
  const head = [
    `${method} ${path} HTTP/1.1`,
    "Host: 127.0.0.1",
    "Accept: */*",
    ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
    ...(body === undefined
      ? []
      : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(payload)}`]),
  ];
  return `${head.join("\r\n")}\r\n\r\n${payload}`;
}
