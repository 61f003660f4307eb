"""Values shared by modules of the face, independent of datasets."""
