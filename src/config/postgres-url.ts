/**
 * Whether a text is the URL of a PostgreSQL database, in the form that the driver reads. Its own errors would show the
 * password.
 *
 * A password whose `/`, `?` or `#` is not percent-encoded ends the host too early, so what should be the database then
 * contains the rest of the password. Messages name the database, so such a URL is refused.
 */
export function isPostgresUrl(text: string): boolean {
  if (!/^postgres(?:ql)?:\/\/[!-~]+$/.test(text)) return false;
  const url = URL.parse(text);
  if (url === null || url.hash !== "" || !/^\/[^/@]+$/.test(url.pathname)) return false;
  const parts = [url.username, url.password, url.pathname];
  return (url.hostname !== "" || url.searchParams.has("host")) && parts.every(isDecodable);
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
