/** Begins audit records and writes their events, one JSON line each. */

import type { ApiRequest } from '@coracle/runtime/http/seam';
import { lineJson } from '@coracle/runtime/log/log';
import type { UserInfo } from '../auth/identity.ts';
import type { AuditPolicy } from './policy.ts';
import { AuditRecord } from './record.ts';

/** Where lines go; must not throw and not wait. */
export interface AuditSink {
  write(line: string): void;
}

export interface AuditorOptions {
  readonly policy: AuditPolicy;
  readonly sink: AuditSink;
  readonly now: () => number;
}

/** A request as far as it is known when its record begins. */
export interface AuditStart {
  readonly auditId: string;
  readonly request: ApiRequest;
  readonly user: UserInfo | undefined;
  readonly receivedAt: number;
  readonly info: {
    readonly isResource: boolean;
    readonly verb: string;
    readonly path: string;
    readonly group: string;
    readonly version: string;
    readonly resource: string;
    readonly subresource: string;
    readonly namespace: string;
    readonly name: string;
  };
  readonly readBody: () => unknown;
}

export interface Auditor {
  /** The record of a request; undefined when the policy wants none. Writes RequestReceived for an authenticated one. */
  begin(start: AuditStart): AuditRecord | undefined;
}

/** Makes an auditor. */
export function createAuditor({ policy, sink, now }: AuditorOptions): Auditor {
  return {
    begin({ auditId, request, user, receivedAt, info, readBody }) {
      const decision = policy({ ...info, user });
      if (decision.level === 'None') return undefined;
      const record = new AuditRecord(
        { auditId, request, decision, receivedAt, verb: info.verb, user, objectRef: objectRefOf(info) },
        { now, readBody, write: (event) => sink.write(`${lineJson(event)}\n`) },
      );
      if (user) record.received();
      return record;
    },
  };
}

function objectRefOf(info: AuditStart['info']): Record<string, unknown> | undefined {
  if (!info.isResource) return undefined;
  const { resource, namespace, name, group, version, subresource } = info;
  return {
    resource,
    ...(namespace !== '' && { namespace }),
    ...(name !== '' && { name }),
    ...(group !== '' && { apiGroup: group }),
    apiVersion: version,
    ...(subresource !== '' && { subresource }),
  };
}
