/** Admission of `/scale`: webhooks and policies see the Scale that the client sent, not the object behind it. */

import type { UnstructuredObject } from '@coracle/apimachinery/meta/object';
import type { ResourceInfo, ScalePaths } from '@coracle/apimachinery/types/resource';
import { scaleOf, withScale } from '../registry/scale.ts';
import type { AdmissionHooks, AdmissionSubject } from '../registry/write-contract.ts';

/** Hooks that show Scales; what a mutating plug-in changes of the replica count goes into the object. */
export function scaleAdmission(
  hooks: AdmissionHooks,
  { info, paths }: { readonly info: ResourceInfo; readonly paths: ScalePaths },
): AdmissionHooks {
  const scale = (object: Readonly<UnstructuredObject> | undefined): UnstructuredObject | undefined =>
    // Where nobody has set a count there is none to show.
    object && (scaleOf(info, object, paths, 0) as unknown as UnstructuredObject);
  const shown = (subject: AdmissionSubject): AdmissionSubject => ({
    ...subject,
    object: scale(subject.object),
    oldObject: scale(subject.oldObject),
  });
  return {
    mutate(operation, subject) {
      const view = shown(subject);
      const before = JSON.stringify(view.object?.['spec']);
      const keep = (): void => {
        const { object } = subject;
        if (!object || !view.object || JSON.stringify(view.object['spec']) === before) return;
        const { metadata } = object;
        const about = { info, name: metadata.name ?? '', namespace: metadata.namespace ?? '', dryRun: false };
        Object.assign(object, withScale(about, object, { scale: view.object, paths }), { metadata });
        subject.rewritten = true;
      };
      const pending = hooks.mutate(operation, view);
      if (pending) return pending.then(keep);
      keep();
    },
    validate: (operation, subject) => hooks.validate(operation, shown(subject)),
  };
}
