/** All notice types. The webhook gets all of them. */
export const NOTICE_TYPES = [
  "task.finished",
  "approval.required",
  "limit.exceeded",
  "budget.warning",
  "ledger.checkpoint",
] as const;
export type NoticeType = (typeof NOTICE_TYPES)[number];
