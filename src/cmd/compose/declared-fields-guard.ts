/**
 * The guard of declared fields within the embedded server: the rules of `gitops/guard`, where upstream's webhook stands. An
 * object without the label of a declared version costs two look-ups of that label.
 */
import type { DeepReadonly, KubeObject, UnstructuredObject } from '../../api/meta/object.ts';
import { GUARD_NAME, guardHookName, isGuardOn, refusalOfWrite } from '../../gitops/guard/decide-write.ts';
import { DECLARED_VERSION } from '../../gitops/status/metadata-keys.ts';
import type { AdmissionAttributes, AdmissionPlugin } from '../../server/admission/plugin.ts';
import { denial } from '../../server/admission/webhook/webhook-failure.ts';
import type { ObjectStore } from '../../server/cache/object-store.ts';
import { GUARD_TRUSTED } from './components.ts';

const CONFIGURATION = {
  prefix: 'admissionregistration.k8s.io/validatingwebhookconfigurations',
  namespace: '',
  name: GUARD_NAME,
};
/** Where upstream's components are, its own webhook decides. */
const UPSTREAM = { prefix: 'apps/deployments', namespace: 'config-management-system', name: 'reconciler-manager' };

type Seen = Readonly<UnstructuredObject> | undefined;

/** Makes the plug-in. */
export function declaredFieldsGuard({ store }: { readonly store: Pick<ObjectStore, 'get'> }): AdmissionPlugin {
  const isOn = (): boolean =>
    isGuardOn(store.get(CONFIGURATION)?.object as DeepReadonly<KubeObject> | undefined) && !store.get(UPSTREAM);
  return {
    name: 'DeclaredFieldsGuard',
    matches: (operation, _info, subresource) => subresource === '' && operation !== 'CONNECT',
    validate({ operation, info, user, dryRun, object, oldObject }: AdmissionAttributes) {
      // A dry run changes nothing, and a plan of a source is made of them.
      if (dryRun) return;
      const isConcerned = isDeclared(object) || isDeclared(oldObject) || info.resource === 'resourcegroups';
      if (!isConcerned || operation === 'CONNECT' || !isOn()) return;
      const message = refusalOfWrite({ operation, username: user.username, object, oldObject }, GUARD_TRUSTED);
      if (message !== undefined) throw denial(guardHookName(info), { code: 403, reason: 'Forbidden', message });
    },
  };
}

const isDeclared = (object: Seen): boolean => object?.metadata.labels?.[DECLARED_VERSION] !== undefined;
