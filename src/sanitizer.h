/* Whether this build carries a sanitizer, whose runtime needs more stack, and descriptor 2. */
#ifndef PROFIL_SANITIZER_H
#define PROFIL_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PROFIL_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PROFIL_SANITIZED 1
#endif
#endif
#ifndef PROFIL_SANITIZED
#define PROFIL_SANITIZED 0
#endif

#endif
