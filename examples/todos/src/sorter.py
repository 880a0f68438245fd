"""Sorts letters by where they go."""


def sort(letters):
    # TODO: letters without an address end up last
    return sorted(letters, key=lambda letter: letter.address or "")
