/**
 * Annotations by which KubeVirt's functional tests make a launcher fail or wait (kubevirt.io/api core/v1 FuncTest…). They
 * are served only where the developer's gate FunctionalTestHooks is on: else any user could hold up a drain with them.
 * `func-test-ignore-migration-backoff`, which holds up nobody, is always served.
 */

/** On an instance: its launcher ends before the guest is started. */
export const FAIL_FAST_HOOK = 'kubevirt.io/func-test-virt-launcher-fail-fast';
/** On an instance: its source fails each migration at its beginning. */
export const FAIL_MIGRATION_HOOK = 'kubevirt.io/func-test-force-launcher-migration-failure';
/** On an instance: the target of a migration never gets ready to receive. */
export const BLOCK_TARGET_HOOK = 'kubevirt.io/func-test-block-migration-target-preparation';
/** On an instance: its memory cannot be changed while it runs. */
export const FAIL_MEMORY_HOTPLUG_HOOK = 'kubevirt.io/func-test-memory-hotplug-fail';
/** On a migration, and on the target Pod made for it: image of the launcher there; one that no node has. */
export const TARGET_IMAGE_HOOK = 'kubevirt.io/func-test-migration-target-image-override';

/** Argument of a launcher that shall fail at once. */
export const SIMULATE_CRASH = '--simulate-crash';
