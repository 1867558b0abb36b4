import { configure } from '@testing-library/react';

/** How long `findBy` and `waitFor` wait: not one second as usual, but as long as `until`, because a busy machine takes its time. Milliseconds. */
configure({ asyncUtilTimeout: 240_000 });
