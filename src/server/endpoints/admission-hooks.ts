/** Binds the admission chain to one request: its user, its resource, its warnings. */
import type { ResourceInfo } from '../../api/kinds/resource.ts';
import { runMutating, runValidating } from '../admission/chain.ts';
import type { AdmissionAttributes, AdmissionOperation } from '../admission/plugin.ts';
import type { AdmissionHooks, AdmissionSubject } from '../registry/write-call.ts';
import type { Exchange } from './exchange.ts';

export function admissionHooks(
  exchange: Exchange,
  {
    info,
    subresource,
    dryRun,
  }: { readonly info: ResourceInfo; readonly subresource: string; readonly dryRun: boolean },
): AdmissionHooks {
  const { admission } = exchange.server;
  const attributes = (operation: AdmissionOperation, subject: AdmissionSubject): AdmissionAttributes => ({
    operation,
    info,
    subresource,
    namespace: exchange.info.namespace || (subject.oldObject ?? subject.object)?.metadata.namespace || '',
    user: exchange.user,
    dryRun,
    warn: exchange.warn,
    ...subject,
    // A getter: most requests never need their signal, and making one costs.
    get signal() {
      return exchange.request.signal;
    },
  });
  return {
    mutate: (operation, subject) => runMutating(admission, attributes(operation, subject)),
    validate: (operation, subject) => runValidating(admission, attributes(operation, subject)),
  };
}
