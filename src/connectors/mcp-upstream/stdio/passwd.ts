import { readFileSync } from "node:fs";

export interface SystemUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
}

/** The users in the text of `/etc/passwd` (passwd(5)). Malformed lines are skipped. */
export function parsePasswd(text: string): readonly SystemUser[] {
  return text.split("\n").flatMap((line) => {
    const [name = "", , uid = "", gid = "", , home = ""] = line.split(":");
    const isUser = /^\d{1,10}$/.test(uid) && /^\d{1,10}$/.test(gid) && home.startsWith("/");
    return isUser ? [{ name, uid: Number(uid), gid: Number(gid), home }] : [];
  });
}

/** The users in this machine's `/etc/passwd`; none if it has no such file. */
export function systemUsers(path = "/etc/passwd"): readonly SystemUser[] {
  try {
    return parsePasswd(readFileSync(path, "utf8"));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}
