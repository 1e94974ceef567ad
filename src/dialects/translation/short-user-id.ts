/** The longest name of a user that OpenAI's and Anthropic's APIs accept. */
const LONGEST = 64;

/** A client's name for its user. A long one is replaced by its hash, which always identifies the same user. */
export function shortUserId(user: string): string {
  return user.length <= LONGEST ? user : new Bun.CryptoHasher("sha256").update(user).digest("hex");
}
