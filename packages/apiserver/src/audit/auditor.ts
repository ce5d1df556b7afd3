/** Begins audit records and writes their events, one JSON line each. */

import { lineJson } from '@coracle/runtime/log/log';
import type { AuditPolicy } from './policy.ts';
import { AuditRecord, type AuditStart } from './record.ts';

/** Where lines go; must not throw and not wait. */
export interface AuditSink {
  write(line: string): void;
}

export interface Auditor {
  /** The record of a request; undefined when the policy wants none. Writes RequestReceived for an authenticated one. */
  begin(start: AuditStart): AuditRecord | undefined;
}

/** Makes an auditor. */
export function createAuditor({
  policy,
  sink,
  now,
}: {
  readonly policy: AuditPolicy;
  readonly sink: AuditSink;
  readonly now: () => number;
}): Auditor {
  const out = { now, write: (event: object) => sink.write(`${lineJson(event)}\n`) };
  return {
    begin(start) {
      const { user, info } = start;
      const decision = policy({ ...info, user });
      if (decision.level === 'None') return undefined;
      const record = new AuditRecord(start, decision, out);
      if (user) record.write('RequestReceived');
      return record;
    },
  };
}
