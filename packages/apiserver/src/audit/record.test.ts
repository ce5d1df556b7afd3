import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ApiRequest } from '../../../runtime/src/http/seam.ts';
import { parseRequestInfo } from '../endpoints/request-info.ts';
import type { AuditLevel } from './policy.ts';
import { AuditRecord } from './record.ts';

// Compat Admission and quota, P2, yes: audit annotations of webhooks; the patch
//   (`patch.webhook.admission.k8s.io/round_N_index_M`) at levels Request and RequestResponse alone
test('an annotation that shows something of the body is written at the levels that show the body', () => {
  const annotationsAt = (level: AuditLevel): unknown => {
    const events: Record<string, unknown>[] = [];
    const request = { path: '/x', query: '', headers: {}, peer: { address: '127.0.0.1' } } as unknown as ApiRequest;
    const decision = { level, omitStages: new Set<never>(), omitManagedFields: false };
    const info = parseRequestInfo({ method: 'PUT', path: '/api/v1/nodes/a', query: '' });
    const start = { auditId: 'a', request, receivedAt: 0, info, user: undefined, readBody: () => ({}) };
    const record = new AuditRecord(start, decision, { now: () => 0, write: (event) => events.push(event) });
    record.write('ResponseComplete', {
      code: 200,
      responseBody: undefined,
      impersonatedUser: undefined,
      annotations: new Map([['a', '1']]),
      annotationDetails: new Map([['patch', '[]']]),
    });
    return events[0]!['annotations'];
  };
  assert.deepEqual(annotationsAt('Metadata'), { a: '1' });
  assert.deepEqual(annotationsAt('Request'), { a: '1', patch: '[]' });
  assert.deepEqual(annotationsAt('RequestResponse'), { a: '1', patch: '[]' });
});
